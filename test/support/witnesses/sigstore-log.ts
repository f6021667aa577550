/** The smallest honest Rekor v1: a log of two leaves with an ECDSA P-256 key, and bundles with an entry in it. Independent of src. */
import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { bundleToJSON, toDSSEBundle, toMessageSignatureBundle } from '@sigstore/bundle';

const MEDIA_TYPE = 'application/vnd.dev.sigstore.trustedroot+json;version=0.1';
const NAME = 'rekor.example';

/** When the log says that it took an entry, Unix seconds. */
export const INTEGRATED_TIME = 1_750_000_000;

/** A key that signs artifacts; `hash` is what it signs with, null for Ed25519. */
export type Signer = { publicKey: KeyObject; pem: string; hash: string | null; sign(data: Buffer): Buffer };

/** A bundle's JSON, as far as tests change it. */
export type BundleJson = {
  mediaType: string;
  verificationMaterial: {
    tlogEntries: ReturnType<SigstoreLog['entry']>[];
    timestampVerificationData?: { rfc3161Timestamps: { signedTimestamp: string }[] };
    [other: string]: unknown;
  };
  [other: string]: unknown;
};

export function makeSigner(kind: 'P-256' | 'P-384' | 'ed25519'): Signer {
  const { publicKey, privateKey } =
    kind === 'ed25519' ? generateKeyPairSync('ed25519') : generateKeyPairSync('ec', { namedCurve: kind });
  const hash = { 'P-256': 'sha256', 'P-384': 'sha384', ed25519: null }[kind];
  const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
  return { publicKey, pem, hash, sign: (data) => sign(hash, data, privateKey) };
}

/** A bundle over the file itself, without log entries. */
export function messageBundle(artifact: Buffer, signer: Signer): BundleJson {
  const signature = signer.sign(artifact);
  const options = { digest: digestOf('sha256', artifact), signature, keyHint: 'hint' };
  return bundleToJSON(toMessageSignatureBundle(options)) as unknown as BundleJson;
}

/** A bundle with an in-toto statement about the file. */
export function statementBundle(artifact: Buffer, signer: Signer, type = 'https://in-toto.io/Statement/v1') {
  const sha256 = digestOf('sha256', artifact).toString('hex');
  const statement = {
    _type: type,
    subject: [{ name: 'a', digest: { sha256 } }],
    predicateType: 'x',
    predicate: {},
  };
  const payload = Buffer.from(JSON.stringify(statement));
  const payloadType = 'application/vnd.in-toto+json';
  const pae = Buffer.concat([
    Buffer.from(`DSSEv1 ${payloadType.length} ${payloadType} ${payload.length} `),
    payload,
  ]);
  const options = {
    artifact: payload,
    artifactType: payloadType,
    signature: signer.sign(pae),
    keyHint: 'hint',
  };
  return { pae, payload, json: bundleToJSON(toDSSEBundle(options)) as unknown as BundleJson };
}

export type SigstoreLog = ReturnType<typeof makeLog>;

/** A log with its own key. */
export function makeLog() {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const id = digestOf('sha256', spki);
  const validFor: { start?: string; end?: string } = { start: '2025-01-01T00:00:00Z' };
  const trustedRoot = {
    mediaType: MEDIA_TYPE,
    tlogs: [
      {
        baseUrl: `https://${NAME}`,
        hashAlgorithm: 'SHA2_256',
        publicKey: { rawBytes: spki.toString('base64'), keyDetails: 'PKIX_ECDSA_P256_SHA_256', validFor },
        logId: { keyId: id.toString('base64') },
      },
    ],
    certificateAuthorities: [],
    ctlogs: [],
    timestampAuthorities: [] as object[],
  };
  const entry = (kind: string, version: string, spec: object) => {
    const body = Buffer.from(JSON.stringify({ apiVersion: version, kind, spec }));
    const other = digestOf('sha256', Buffer.from([0]), Buffer.from('another leaf'));
    const leaf = digestOf('sha256', Buffer.from([0]), body);
    const rootHash = digestOf('sha256', Buffer.from([1]), other, leaf).toString('base64');
    const note = `${NAME} - 42\n2\n${rootHash}\nTimestamp: 1750000000\n`;
    const line = Buffer.concat([id.subarray(0, 4), sign('sha256', Buffer.from(note), privateKey)]);
    const promise = {
      body: body.toString('base64'),
      integratedTime: INTEGRATED_TIME,
      logID: id.toString('hex'),
      logIndex: 9,
    };
    return {
      logIndex: '9',
      logId: { keyId: id.toString('base64') },
      kindVersion: { kind, version },
      integratedTime: String(INTEGRATED_TIME),
      inclusionPromise: {
        signedEntryTimestamp: sign('sha256', Buffer.from(JSON.stringify(promise)), privateKey).toString(
          'base64',
        ),
      },
      inclusionProof: {
        logIndex: '1',
        rootHash,
        treeSize: '2',
        hashes: [other.toString('base64')],
        checkpoint: { envelope: `${note}\n— ${NAME} ${line.toString('base64')}\n` },
      },
      canonicalizedBody: body.toString('base64'),
    };
  };
  return { trustedRoot, entry };
}

/** The specs of the entries that Rekor's two versions make of a DSSE envelope, by kind and version. */
export function dsseSpecs(
  pae: Buffer,
  payload: Buffer,
  signature: Buffer,
  signer: Signer,
): [string, string, object][] {
  const pem = Buffer.from(signer.pem).toString('base64');
  const rawBytes = signer.publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
  const verifier = { publicKey: { rawBytes }, keyDetails: 'PKIX_ECDSA_P256_SHA_256' };
  const sig = signature.toString('base64');
  const hex = { algorithm: 'sha256', value: digestOf('sha256', payload).toString('hex') };
  const base64 = { algorithm: 'SHA2_256', digest: digestOf('sha256', payload).toString('base64') };
  const twice = Buffer.from(sig).toString('base64');
  return [
    ['dsse', '0.0.1', { payloadHash: hex, signatures: [{ signature: sig, verifier: pem }] }],
    ['dsse', '0.0.2', { dsseV002: { payloadHash: base64, signatures: [{ content: sig, verifier }] } }],
    [
      'intoto',
      '0.0.2',
      { content: { payloadHash: hex, envelope: { signatures: [{ sig: twice, publicKey: pem }] } } },
    ],
    hashedRekordSpec(pae, signature, signer),
    [
      'hashedrekord',
      '0.0.2',
      {
        hashedRekordV002: {
          data: { algorithm: 'SHA2_256', digest: digestOf('sha256', pae).toString('base64') },
          signature: { content: sig, verifier },
        },
      },
    ],
  ];
}

/** The entry that Rekor v1 makes of a signature over a file. */
export function hashedRekordSpec(
  signed: Buffer,
  signature: Buffer,
  signer: Signer,
): [string, string, object] {
  const algorithm = signer.hash ?? 'sha256';
  const spec = {
    data: { hash: { algorithm, value: digestOf(algorithm, signed).toString('hex') } },
    signature: {
      content: signature.toString('base64'),
      publicKey: { content: Buffer.from(signer.pem).toString('base64') },
    },
  };
  return ['hashedrekord', '0.0.1', spec];
}

export function digestOf(algorithm: string, ...parts: Uint8Array[]): Buffer {
  const hash = createHash(algorithm);
  for (const part of parts) hash.update(part);
  return hash.digest();
}
