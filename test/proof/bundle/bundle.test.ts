import { createPublicKey, verify } from 'node:crypto';
import { bundleFromJSON, type SerializedBundle } from '@sigstore/bundle';
import { TrustedRoot as SigstoreTrustedRoot } from '@sigstore/protobuf-specs';
import { toSignedEntity, toTrustMaterial, Verifier } from '@sigstore/verify';
import t from 'tap';
import { WitnessKind } from '../../../gen/attestation/v1/bundle_pb.js';
import { prepareBatch } from '../../../src/proof/bundle/bundle.js';
import type { SigstoreBundle } from '../../../src/proof/bundle/sigstore-bundle.js';
import { trustedRoot } from '../../../src/proof/bundle/trusted-root.js';
import { fromUtf8, toBase64, toHex } from '../../../src/proof/bytes/encoding.js';
import { FormatError } from '../../../src/proof/bytes/format-error.js';
import { ed25519Spki } from '../../../src/proof/bytes/primitives.js';
import { parseCheckpoint } from '../../../src/proof/log/checkpoint.js';
import { leafHash, verifyInclusion } from '../../../src/proof/log/merkle.js';
import { tlogProof } from '../../../src/proof/log/tlog-proof.js';
import { dsseKeyHint } from '../../../src/proof/statement/dsse.js';
import { BATCH, LATER_SIZE, LOG_INDEX, makeService, SUBMITTED_AT } from '../sample.js';
import { makeSample } from '../sample-bundles.js';

const service = await makeService(t.testdir());
const { bundle, statement } = await makeSample(service);
const sigstore = structuredClone(bundle.sigstoreBundle) as unknown as SigstoreBundle;
const root = trustedRoot(
  [{ origin: service.origin, publicKey: service.log.publicKey }],
  [
    {
      operator: 'self',
      name: 'tsa',
      uri: '',
      certChain: service.authority.certChain,
      validFrom: new Date('2025-01-01T00:00:00Z'),
      validTo: new Date('2026-01-01T00:00:00Z'),
    },
  ],
);

/** What Sigstore's own library makes of a bundle under our trusted root; throws when it refuses. */
function verifyWithSigstore(
  json: unknown,
  trusted: unknown = root,
  wanted: ConstructorParameters<typeof Verifier>[1] = { tlogThreshold: 1, timestampThreshold: 0 },
): void {
  const keys = (hint: string) => {
    if (hint !== dsseKeyHint(service.dsse.publicKey)) throw new Error(`no key ${hint}`);
    return { publicKey: PUBLIC_KEY, validFor: () => true };
  };
  const material = toTrustMaterial(SigstoreTrustedRoot.fromJSON(trusted), keys);
  const verifier = new Verifier(material, wanted);
  verifier.verify(toSignedEntity(bundleFromJSON(json as SerializedBundle)));
}

const PUBLIC_KEY = createPublicKey({
  key: Buffer.from(service.dsse.publicKey),
  format: 'der',
  type: 'spki',
});

t.test("Sigstore's own verifier accepts the Sigstore bundle under our trusted root", async (t) => {
  t.doesNotThrow(() => verifyWithSigstore(sigstore));
  t.doesNotThrow(() => verifyWithSigstore(JSON.parse(JSON.stringify(sigstore))));
  t.throws(
    () => verifyWithSigstore(sigstore, root, {}),
    'by default it wants a time stamp, which is not there',
  );
  const cosigned = await makeSample(service, ['log', 'cosigner']);
  t.doesNotThrow(() => verifyWithSigstore(cosigned.bundle.sigstoreBundle));
});

t.test(
  "Sigstore's own verifier rejects the bundle once anything that is signed or logged is changed",
  async (t) => {
    const entry = sigstore.verificationMaterial.tlogEntries[0]!;
    const other = await makeSample(await makeService(t.testdir()));
    const otherBundle = other.bundle.sigstoreBundle as unknown as SigstoreBundle;
    const otherEntry = otherBundle.verificationMaterial.tlogEntries[0]!;
    const changes: [what: string, change: (json: SigstoreBundle) => void][] = [
      ['payload', (json) => Object.assign(json.dsseEnvelope, { payload: otherBundle.dsseEnvelope.payload })],
      [
        'signature',
        (json) => Object.assign(json.dsseEnvelope, { signatures: otherBundle.dsseEnvelope.signatures }),
      ],
      [
        'leaf',
        (json) => Object.assign(firstEntry(json), { canonicalizedBody: otherEntry.canonicalizedBody }),
      ],
      [
        'index',
        (json) => Object.assign(firstEntry(json).inclusionProof, { logIndex: String(LOG_INDEX + 1) }),
      ],
      [
        'checkpoint',
        (json) =>
          Object.assign(firstEntry(json).inclusionProof, {
            checkpoint: otherEntry.inclusionProof.checkpoint,
          }),
      ],
      ['log id', (json) => Object.assign(firstEntry(json), { logId: otherEntry.logId })],
      ['a hash', (json) => firstEntry(json).inclusionProof.hashes.reverse()],
      ['a missing hash', (json) => firstEntry(json).inclusionProof.hashes.pop()],
    ];
    for (const [what, change] of changes) {
      const json = structuredClone(sigstore);
      change(json);
      t.throws(() => verifyWithSigstore(json), what);
    }
    const bytes = Buffer.from(entry.inclusionProof.checkpoint.envelope);
    // That library reads base64 leniently: the last characters of a signature line have several spellings there.
    for (let at = 0; at < bytes.length - 5; at += 3) {
      const flipped = Buffer.from(bytes);
      flipped[at]! ^= 1;
      const json = structuredClone(sigstore);
      firstEntry(json).inclusionProof.checkpoint.envelope = flipped.toString();
      t.throws(() => verifyWithSigstore(json), `checkpoint byte ${at}`);
    }
    t.throws(() =>
      verifyWithSigstore(
        sigstore,
        trustedRoot([{ origin: service.origin, publicKey: other.service.log.publicKey }], []),
      ),
    );
    t.throws(() =>
      verifyWithSigstore(
        sigstore,
        trustedRoot([{ origin: 'x.example', publicKey: service.log.publicKey }], []),
      ),
    );
  },
);

t.test('the envelope is one that securesystemslib reads, in Go and in Python', async (t) => {
  const { dsseEnvelope, verificationMaterial } = sigstore;
  t.strictSame(Object.keys(dsseEnvelope).sort(), ['payload', 'payloadType', 'signatures']);
  t.equal(dsseEnvelope.payloadType, 'application/vnd.in-toto+json');
  t.equal(dsseEnvelope.signatures.length, 1, 'cosign takes exactly one');
  for (const signature of dsseEnvelope.signatures) {
    // Its DSSE verifier passes over a signature whose key id is neither empty nor `SHA256:` and the key's fingerprint.
    // Python's securesystemslib throws without the member.
    t.equal(signature.keyid, '');
    t.strictSame(Object.keys(signature), ['keyid', 'sig']);
    const payload = Buffer.from(dsseEnvelope.payload, 'base64');
    t.equal(payload.toString('base64'), dsseEnvelope.payload, 'standard base64 with padding');
    const sig = Buffer.from(signature.sig, 'base64');
    t.equal(sig.toString('base64'), signature.sig, 'standard base64 with padding');
    const pae = `DSSEv1 28 application/vnd.in-toto+json ${payload.length} ${payload}`;
    t.ok(verify('sha256', Buffer.from(pae), PUBLIC_KEY, sig), 'DER over the pre-authentication encoding');
  }
  t.equal(verificationMaterial.publicKey.hint, dsseKeyHint(service.dsse.publicKey));
});

function firstEntry(json: SigstoreBundle) {
  return json.verificationMaterial.tlogEntries[0]!;
}

t.test('a bundle states the content of its statement and checkpoints', async (t) => {
  const [first, later] = bundle.checkpoints;
  t.match(bundle.submission, {
    id: statement.submissionId,
    artifactSha256: statement.artifactSha256,
    leafSha256: toHex(leafHash(Buffer.from(firstEntry(sigstore).canonicalizedBody, 'base64'))),
  });
  t.equal(Number(bundle.submission?.submittedAt?.seconds), Math.floor(Date.parse(SUBMITTED_AT) / 1000));
  t.match(bundle.batch, { id: BATCH.id, firstIndex: 650n, treeSize: 1000n });
  t.equal(bundle.batch?.rootHash, toHex(parseCheckpoint(first!.note).rootHash));
  t.strictSame([first!.treeSize, later!.treeSize], [1000n, BigInt(LATER_SIZE)]);
  for (const { note, inclusionProof } of bundle.checkpoints) {
    const { size, rootHash } = parseCheckpoint(note);
    const hash = leafHash(Buffer.from(firstEntry(sigstore).canonicalizedBody, 'base64'));
    t.ok(verifyInclusion({ leafHash: hash, index: LOG_INDEX, size, root: rootHash }, inclusionProof));
  }
});

t.test('cosignatures are in the note of the checkpoint they are about, and nowhere else', async (t) => {
  const [first, later] = bundle.checkpoints;
  const line = fromUtf8(bundle.witnesses.find(({ kind }) => kind === WitnessKind.LOG_WITNESS)!.evidence);
  t.ok(later!.note.endsWith(line));
  t.notOk(first!.note.includes(line));
  t.equal(firstEntry(sigstore).inclusionProof.checkpoint.envelope, first!.note);
});

t.test(
  'a bundle without its checkpoint, or with evidence that is no cosignature, cannot be assembled',
  async (t) => {
    const parts = { batch: BATCH, logKey: service.log.publicKey, notes: [], witnesses: [] };
    t.throws(() => prepareBatch(parts), FormatError);
    t.throws(() => prepareBatch({ ...parts, notes: ['x'] }), FormatError);
    const witness = {
      name: 'w1',
      kind: WitnessKind.LOG_WITNESS,
      treeSize: BATCH.treeSize,
      evidence: Uint8Array.of(0xff),
      detail: {},
      landedAt: new Date(0),
    };
    const { note } = bundle.checkpoints[0]!;
    t.throws(() => prepareBatch({ ...parts, notes: [note], witnesses: [witness] }), FormatError);
  },
);

t.test('the trusted root names logs and authorities as Sigstore does', async (t) => {
  t.match(root, {
    mediaType: 'application/vnd.dev.sigstore.trustedroot+json;version=0.1',
    tlogs: [
      {
        baseUrl: 'https://live.log.example',
        hashAlgorithm: 'SHA2_256',
        publicKey: {
          rawBytes: toBase64(ed25519Spki(service.log.publicKey)),
          keyDetails: 'PKIX_ED25519',
          validFor: { start: '1970-01-01T00:00:00.000Z' },
        },
        logId: firstEntry(sigstore).logId,
      },
    ],
    timestampAuthorities: [
      {
        subject: { organization: 'self', commonName: 'tsa' },
        certChain: { certificates: service.authority.certChain.map((der) => ({ rawBytes: toBase64(der) })) },
        validFor: { start: '2025-01-01T00:00:00.000Z', end: '2026-01-01T00:00:00.000Z' },
      },
    ],
  });
  t.strictSame(
    JSON.parse(JSON.stringify(SigstoreTrustedRoot.toJSON(SigstoreTrustedRoot.fromJSON(root)))).tlogs,
    root.tlogs,
  );
});

t.test('a tlog-proof holds index, hashes and checkpoint in the order of its format', async (t) => {
  const { note, inclusionProof } = bundle.checkpoints[0]!;
  const text = tlogProof(LOG_INDEX, inclusionProof, note);
  const lines = text.split('\n');
  t.strictSame(lines.slice(0, 2), ['c2sp.org/tlog-proof@v1', `index ${LOG_INDEX}`]);
  t.strictSame(lines.slice(2, 2 + inclusionProof.length), inclusionProof.map(toBase64));
  t.equal(lines[2 + inclusionProof.length], '');
  t.equal(lines.slice(3 + inclusionProof.length).join('\n'), note);
  t.equal(tlogProof(0, [], 'checkpoint\n'), 'c2sp.org/tlog-proof@v1\nindex 0\n\ncheckpoint\n');
});
