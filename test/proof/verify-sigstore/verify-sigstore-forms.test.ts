/** Which forms of a Sigstore bundle are read, which are refused, and which are not for this verifier to judge. */
import { createHash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import t from 'tap';
import { fromPem, toPem } from '../../../src/proof/asn1/pem.js';
import { parsePublicKey } from '../../../src/proof/asn1/public-key.js';
import { trustedRoot } from '../../../src/proof/bundle/trusted-root.js';
import { parseTrustedRoot } from '../../../src/proof/verify-sigstore/trusted-root.js';
import {
  type SigstoreVerification,
  verifySigstoreBundle,
} from '../../../src/proof/verify-sigstore/verify-sigstore.js';
import { timestampRequest } from '../../../src/server/witness/timestamp-request.js';
import { makeOpensslTsa, type OpensslTsa } from '../../support/witnesses/openssl-tsa.js';
import {
  hashedRekordSpec,
  makeLog,
  makeSigner,
  messageBundle,
} from '../../support/witnesses/sigstore-log.js';
import { ARTIFACT } from '../sample.js';
import { sample, service } from '../verifying.js';

type Json = Record<string, unknown>;

const artifact = Buffer.from(ARTIFACT);
const ROOT = trustedRoot([{ origin: service.origin, publicKey: service.log.publicKey }], []);
const PEM = toPem('PUBLIC KEY', service.dsse.publicKey);

/** What becomes of a bundle of this service, or of another signer with another root, with a change made to it. */
async function verify(
  change: (bundle: Json) => unknown,
  {
    bundle = sample.bundle.sigstoreBundle as Json,
    pem = PEM,
    root = ROOT as object,
    wantsTimestamp = false,
  } = {},
): Promise<SigstoreVerification> {
  const copy = structuredClone(bundle);
  change(copy);
  return verifySigstoreBundle(JSON.stringify(copy), {
    key: parsePublicKey(fromPem('PUBLIC KEY', pem)),
    artifact: { sha256: new Uint8Array(createHash('sha256').update(artifact).digest()), bytes: artifact },
    trust: parseTrustedRoot(JSON.stringify(root)),
    wantsTimestamp,
  });
}

/** The value at a path of plain names. */
function at(json: Json, path: string): Json {
  return path.split('.').reduce((node, name) => (name === '' ? node : (node[name] as Json)), json);
}

function codes({ steps }: SigstoreVerification): string[] {
  return steps.flatMap(({ checks }) =>
    checks.filter(({ status }) => status !== 'passed').map(({ code }) => code),
  );
}

const MATERIAL = 'verificationMaterial';
const ENTRY = 'verificationMaterial.tlogEntries.0';
const certificate = { rawBytes: 'AA==' };

t.test('a bundle of another version or signed under a certificate is not judged', async (t) => {
  const changes: [what: string, change: (bundle: Json) => unknown][] = [
    ...['0.1', '0.2', '0.4'].map((version): [string, (bundle: Json) => unknown] => [
      version,
      (b) => set(b, { mediaType: `application/vnd.dev.sigstore.bundle+json;version=${version}` }),
    ]),
    ['0.4, named', (b) => set(b, { mediaType: 'application/vnd.dev.sigstore.bundle.v0.4+json', new: 1 })],
    ['a certificate', (b) => set(at(b, MATERIAL), { publicKey: undefined, certificate })],
    ['null beside it', (b) => set(at(b, MATERIAL), { publicKey: null, certificate })],
    [
      'a chain',
      (b) => set(at(b, MATERIAL), { publicKey: undefined, x509CertificateChain: { certificates: [] } }),
    ],
  ];
  for (const [what, change] of changes) {
    const found = await verify(change);
    t.equal(found.verdict, 'could_not_check', what);
    t.match(
      found.summary,
      /^Could not be checked: it is (signed under a certificate|a Sigstore bundle of)/,
      what,
    );
    t.equal(found.steps[0]?.code, 'shape.not_checkable', what);
  }
  for (const mediaType of ['application/json', 'application/vnd.dev.sigstore.bundle.v0.3', '']) {
    t.equal((await verify((b) => set(b, { mediaType }))).verdict, 'not_verified', mediaType);
  }
});

t.test('a statement of another type, and an entry of a kind that is not known, are not judged', async (t) => {
  const typed = await verify((b) => set(at(b, 'dsseEnvelope'), { payloadType: 'application/json' }));
  t.strictSame([typed.verdict, typed.steps[0]?.code], ['could_not_check', 'shape.not_checkable']);
  const signer = makeSigner('P-256');
  const log = makeLog();
  const plain = messageBundle(artifact, signer);
  set(plain.verificationMaterial, { tlogEntries: [log.entry('rekord', '0.0.7', {})] });
  const found = await verify(() => {}, { bundle: plain as Json, pem: signer.pem, root: log.trustedRoot });
  t.strictSame([found.verdict, codes(found)[0]], ['could_not_check', 'entries.not_checkable']);
  t.match(found.summary, 'entries of kind rekord 0.0.7 are not known here');
});

t.test('of a oneof exactly one member may be there', async (t) => {
  const message = { messageDigest: { algorithm: 'SHA2_256', digest: '' }, signature: 'AA==' };
  const several: ((bundle: Json) => unknown)[] = [
    (b) => set(at(b, MATERIAL), { certificate }),
    (b) => set(at(b, MATERIAL), { x509CertificateChain: { certificates: [] } }),
    (b) => set(at(b, MATERIAL), { publicKey: null }),
    (b) => set(b, { messageSignature: message }),
    (b) => set(b, { dsseEnvelope: undefined }),
  ];
  for (const change of several) {
    const found = await verify(change);
    t.strictSame([found.verdict, found.steps[0]?.code], ['not_verified', 'shape.invalid'], `${change}`);
    t.match(found.summary, 'must have exactly one of', `${change}`);
  }
  const empty = await verify((b) => {
    set(b, { messageSignature: null });
    set(at(b, MATERIAL), { certificate: null });
  });
  t.equal(empty.verdict, 'verified', 'null is no member');
});

t.test('members that the format does not have are named and ignored in every message', async (t) => {
  const messages = pathsOf(sample.bundle.sigstoreBundle as Json);
  t.equal(messages.length, 10);
  for (const path of messages) {
    for (const value of [1, null]) {
      const found = await verify((b) => set(at(b, path), { unheard_of: value }));
      t.equal(found.verdict, 'verified', path);
      t.match(found.summary, '/unheard_of is not known to this version and is ignored', path);
    }
  }
});

/** The path of each object in a JSON value. */
function pathsOf(value: unknown, path = ''): string[] {
  if (typeof value !== 'object' || value === null) return [];
  const inside = Object.entries(value).flatMap(([name, member]) =>
    pathsOf(member, path === '' ? name : `${path}.${name}`),
  );
  return Array.isArray(value) ? inside : [path, ...inside];
}

t.test('members may have the names of the proto, but not both', async (t) => {
  const found = await verify((b) => {
    set(b, { media_type: b.mediaType, mediaType: undefined });
    set(at(b, ENTRY), { log_index: at(b, ENTRY).logIndex, logIndex: undefined });
  });
  t.equal(found.verdict, 'verified');
  const both = await verify((b) => set(at(b, ENTRY), { log_index: at(b, ENTRY).logIndex }));
  t.match(both.summary, 'logIndex: occurs under two names');
});

t.test('base64 is read in every form that readers of ProtoJSON take', async (t) => {
  const places: [path: string, name: string][] = [
    ['dsseEnvelope', 'payload'],
    ['dsseEnvelope.signatures.0', 'sig'],
    [`${ENTRY}.logId`, 'keyId'],
    [ENTRY, 'canonicalizedBody'],
    [`${ENTRY}.inclusionProof`, 'rootHash'],
    [`${ENTRY}.inclusionProof.hashes`, '0'],
  ];
  const forms: [what: string, spell: (base64: string) => string][] = [
    ['line breaks', (text) => text.replaceAll(/.{20}/g, '$&\r\n')],
    ['no padding', (text) => text.replace(/=+$/, '')],
    ['the URL alphabet', (text) => text.replaceAll('+', '-').replaceAll('/', '_')],
    ['all of it', (text) => `${text.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')}\n`],
  ];
  for (const [path, name] of places) {
    for (const [what, spell] of forms) {
      const found = await verify((b) => set(at(b, path), { [name]: spell(String(at(b, path)[name])) }));
      t.equal(found.verdict, 'verified', `${path}.${name}: ${what}: ${found.summary}`);
    }
    for (const text of ['A-/A', 'AA A', 'A', 'AAA=A', 'AB==', '*AAA']) {
      const found = await verify((b) => set(at(b, path), { [name]: text }));
      t.equal(found.verdict, 'not_verified', `${path}.${name}: ${text}`);
      t.match(found.summary, /base64/, text);
    }
  }
});

t.test('the index of an entry fits that of its inclusion proof', async (t) => {
  for (const logIndex of ['701', '699', '0', undefined]) {
    const found = await verify((b) => set(at(b, ENTRY), { logIndex }));
    t.strictSame(
      [found.verdict, codes(found)[0]],
      ['not_verified', 'inclusion.index_mismatch'],
      `${logIndex}`,
    );
  }
  const signer = makeSigner('P-256');
  const log = makeLog();
  const plain = messageBundle(artifact, signer);
  const { signature } = plain.messageSignature as { signature: string };
  const spec = hashedRekordSpec(artifact, Buffer.from(signature, 'base64'), signer);
  set(plain.verificationMaterial, { tlogEntries: [log.entry(...spec)] });
  const foreign = { bundle: plain as Json, pem: signer.pem, root: log.trustedRoot };
  t.equal((await verify(() => {}, foreign)).verdict, 'verified', 'Rekor v1 counts over all its trees');
  const below = await verify((b) => set(at(b, ENTRY), { logIndex: '0' }), foreign);
  t.ok(codes(below).includes('inclusion.index_mismatch'));
});

t.test(
  'a stamp by an authority that is not in the trusted root is named, and counts for nothing',
  async (t) => {
    const dir = t.testdir({ known: {}, stranger: {} });
    const openTsa = (name: string) =>
      makeOpensslTsa({ dir: join(dir, name), curve: 'P-256', signerDigest: 'sha256' });
    const [known, stranger] = [await openTsa('known'), await openTsa('stranger')];
    const signer = makeSigner('P-256');
    const plain = messageBundle(artifact, signer);
    const { signature } = plain.messageSignature as { signature: string };
    const [byKnown, byStranger] = [await stamp(known, signature), await stamp(stranger, signature)];
    const verifyStamps = (stamps: string[], trusted: OpensslTsa | undefined, wantsTimestamp: boolean) =>
      verify(
        (b) => {
          const rfc3161Timestamps = stamps.map((signedTimestamp) => ({ signedTimestamp }));
          set(at(b, MATERIAL), { timestampVerificationData: { rfc3161Timestamps } });
        },
        { bundle: plain as Json, pem: signer.pem, root: rootWith(trusted), wantsTimestamp },
      );
    const cases: [
      stamps: string[],
      trusted: OpensslTsa | undefined,
      wanted: boolean,
      verdict: string,
      code: string,
    ][] = [
      [[byStranger], known, false, 'verified', 'timestamps.authority_unknown'],
      [[byStranger], undefined, false, 'verified', 'timestamps.authority_unknown'],
      [[byStranger], known, true, 'not_verified', 'timestamps.authority_unknown'],
      [[byStranger], undefined, true, 'not_verified', 'timestamps.authority_unknown'],
      [[byKnown, byStranger], known, false, 'verified', 'timestamps.authority_unknown'],
      [[byKnown, byStranger], known, true, 'verified', 'timestamps.authority_unknown'],
      [[byKnown], known, true, 'verified', ''],
      [[], known, true, 'could_not_check', 'timestamps.none'],
      [[], known, false, 'verified', 'timestamps.none'],
      [[await stamp(stranger, 'AAAA')], known, false, 'not_verified', 'timestamps.imprint_mismatch'],
    ];
    for (const [stamps, trusted, wanted, verdict, code] of cases) {
      const found = await verifyStamps(stamps, trusted, wanted);
      const name = `${stamps.length} stamps, ${trusted ? 'one' : 'no'} authority, wanted: ${wanted}`;
      t.equal(found.verdict, verdict, name);
      t.equal(codes(found).find((one) => one.startsWith('timestamps.')) ?? '', code, name);
      t.equal(found.existedBy !== undefined, stamps.includes(byKnown), name);
    }
    const { summary } = await verifyStamps([byStranger], known, false);
    t.match(summary, /the time stamp is by CN=[^;]*, which the trusted root does not have/);
  },
);

async function stamp(tsa: OpensslTsa, signature: string): Promise<string> {
  const digest = new Uint8Array(createHash('sha256').update(Buffer.from(signature, 'base64')).digest());
  const request = timestampRequest({ digest, nonce: new Uint8Array(randomBytes(8)), certReq: true });
  return Buffer.from(await tsa.reply(request)).toString('base64');
}

function rootWith(tsa: OpensslTsa | undefined): object {
  const certificates = tsa?.chain.map((der) => ({ rawBytes: Buffer.from(der).toString('base64') }));
  const validFor = { start: '2020-01-01T00:00:00Z' };
  const timestampAuthorities = tsa ? [{ certChain: { certificates }, validFor }] : [];
  return { mediaType: ROOT.mediaType, timestampAuthorities };
}

function set(of: object, members: object): void {
  Object.assign(of, members);
}
