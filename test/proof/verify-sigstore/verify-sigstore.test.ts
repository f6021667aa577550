import t, { type Test } from 'tap';
import { fromPem, toPem } from '../../../src/proof/asn1/pem.js';
import { parsePublicKey } from '../../../src/proof/asn1/public-key.js';
import { parseTrustedRoot } from '../../../src/proof/verify-sigstore/trusted-root.js';
import {
  type SigstoreVerification,
  verifySigstoreBundle,
} from '../../../src/proof/verify-sigstore/verify-sigstore.js';
import {
  type BundleJson,
  digestOf,
  dsseSpecs,
  INTEGRATED_TIME,
  makeLog,
  makeSigner,
  messageBundle,
  statementBundle,
} from '../../support/witnesses/sigstore-log.js';
import { sample, service } from '../verifying.js';
import { artifact, failures, type Given, OWN_ROOT, verify, withEntry } from './verifying-sigstore.js';

const OWN_PEM = toPem('PUBLIC KEY', service.dsse.publicKey);
const own = () => structuredClone(sample.bundle.sigstoreBundle) as unknown as BundleJson;

/** The steps by what became of them. */
function statuses({ steps }: SigstoreVerification): Record<string, string> {
  return Object.fromEntries(steps.map(({ name, status }) => [name, status]));
}

t.test('the Sigstore bundle of this service verifies under its trusted root', async (t) => {
  const found = await verify({ bundle: own(), pem: OWN_PEM, root: OWN_ROOT });
  t.equal(found.verdict, 'verified');
  t.match(
    found.summary,
    `This artifact is signed by the given key; the signature is in the log ${service.origin}.`,
  );
  t.match(
    found.summary,
    'Not checked: no verified time says whether the log was trusted when it signed; no time stamp',
  );
  t.strictSame(statuses(found), {
    shape: 'passed',
    signature: 'passed',
    artifact: 'passed',
    entries: 'passed',
    inclusion: 'passed',
    checkpoint: 'passed',
    timestamps: 'not_checked',
  });
  t.equal(
    (await verify({ bundle: own(), pem: OWN_PEM, root: OWN_ROOT, digestOnly: true })).verdict,
    'verified',
  );
});

t.test('without a trusted root no log and no time is reported as checked', async (t) => {
  const found = await verify({ bundle: own(), pem: OWN_PEM });
  t.equal(found.verdict, 'verified');
  t.match(statuses(found), { entries: 'passed', checkpoint: 'not_checked', timestamps: 'not_checked' });
  t.match(found.summary, 'This artifact is signed by the given key. Not checked: no trusted root was given');
});

t.test('a changed bundle, another file, key or log is rejected', async (t) => {
  const stranger = makeSigner('P-256');
  const entry = (bundle: BundleJson) => bundle.verificationMaterial.tlogEntries[0]!;
  const bytesAt = (text: string, at: number) =>
    text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1);
  const changes: [code: string, change: (bundle: BundleJson) => unknown][] = [
    ['inclusion.invalid', (bundle) => entry(bundle).inclusionProof.hashes.reverse()],
    ['inclusion.invalid', (bundle) => entry(bundle).inclusionProof.hashes.pop()],
    ['inclusion.invalid', (bundle) => Object.assign(entry(bundle).inclusionProof, { logIndex: '3' })],
    ['inclusion.invalid', (bundle) => Object.assign(entry(bundle).inclusionProof, { treeSize: '3' })],
    [
      'inclusion.invalid',
      (bundle) => Object.assign(entry(bundle).inclusionProof, { rootHash: '0'.repeat(43).concat('=') }),
    ],
    [
      'checkpoint.untrusted_log',
      (bundle) => Object.assign(entry(bundle).logId, { keyId: 'A'.repeat(43).concat('=') }),
    ],
    [
      'checkpoint.not_signed',
      ({ verificationMaterial: { tlogEntries } }) => {
        const { checkpoint } = tlogEntries[0]!.inclusionProof;
        checkpoint.envelope = bytesAt(checkpoint.envelope, checkpoint.envelope.length - 20);
      },
    ],
    ['entries.mismatch', (bundle) => Object.assign(entry(bundle).kindVersion, { kind: 'dsse' })],
    ['shape.invalid', (bundle) => Object.assign(bundle, { mediaType: 'x' })],
    ['shape.invalid', (bundle) => Object.assign(bundle, { messageSignature: { signature: '' } })],
    ['shape.invalid', (bundle) => Object.assign(bundle.verificationMaterial, { publicKey: null })],
    ['shape.invalid', (bundle) => Object.assign(bundle, { dsseEnvelope: { payload: '' } })],
    ['shape.invalid', (bundle) => Object.assign(entry(bundle), { logIndex: '-1' })],
    ['shape.invalid', (bundle) => Object.assign(bundle.verificationMaterial, { tlogEntries: {} })],
  ];
  for (const [code, change] of changes) {
    const bundle = own();
    change(bundle);
    const found = await verify({ bundle, pem: OWN_PEM, root: OWN_ROOT });
    t.equal(found.verdict, 'not_verified', code);
    t.ok(failures(found).includes(code), `${code} is in ${failures(found)}`);
  }
  const others: [code: string, given: Partial<Given>][] = [
    ['artifact.mismatch', { about: Buffer.from('another') }],
    ['signature.invalid', { pem: stranger.pem }],
  ];
  for (const [code, given] of others) {
    const found = await verify({ bundle: own(), pem: OWN_PEM, root: OWN_ROOT, ...given });
    t.equal(found.verdict, 'not_verified', code);
    t.ok(failures(found).includes(code), `${code} is in ${failures(found)}`);
  }
});

t.test('a log that the trusted root lacks could not be checked', async (t) => {
  for (const root of [makeLog().trustedRoot, { mediaType: OWN_ROOT.mediaType }]) {
    const found = await verify({ bundle: own(), pem: OWN_PEM, root });
    t.equal(found.verdict, 'could_not_check');
    t.match(found.summary, 'Could not be checked: the log is not in the trusted root');
  }
});

t.test('a bundle with any signed or logged byte changed does not verify', async (t) => {
  const good = Buffer.from(JSON.stringify(own()));
  // A character for each byte.
  const text = good.toString('latin1');
  const key = parsePublicKey(fromPem('PUBLIC KEY', OWN_PEM));
  const trust = parseTrustedRoot(JSON.stringify(OWN_ROOT));
  const digest = { sha256: new Uint8Array(digestOf('sha256', artifact)) };
  // What names the key is a hint that nothing follows, and the time is not signed by a log without promises. Both may
  // be absent, so that they may have other names.
  const hints = [
    ...text.matchAll(/(?<="hint":")[^"]*|(?<="integratedTime":")0|(?<=")(hint|integratedTime|keyid)(?=":)/g),
  ];
  const isFree = (at: number) => hints.some(({ index, 0: { length } }) => at >= index && at < index + length);
  for (let at = 0; at < text.length; at += 3) {
    if (isFree(at)) continue;
    const bytes = Buffer.from(good);
    bytes[at]! ^= 1;
    const { verdict } = await verifySigstoreBundle(bytes, { key, trust, artifact: digest });
    t.not(verdict, 'verified', `byte ${at}: ${text.slice(at - 30, at + 1)}`);
  }
});

t.test('a signature over the file itself verifies with each kind of key, and needs the file', async (t) => {
  for (const kind of ['P-256', 'P-384', 'ed25519'] as const) {
    const signer = makeSigner(kind);
    const bundle = messageBundle(artifact, signer);
    const root = { mediaType: OWN_ROOT.mediaType };
    t.equal((await verify({ bundle, pem: signer.pem, root })).verdict, 'verified', kind);
    t.equal((await verify({ bundle, pem: signer.pem })).verdict, 'verified', `${kind}, no root`);
    const wanted = await verify({ bundle, pem: signer.pem, root: OWN_ROOT });
    t.match(wanted, { verdict: 'could_not_check', summary: /no log entry is in the bundle/ }, kind);
    const altered = await verify({ bundle, pem: signer.pem, about: Buffer.from('another') });
    t.strictSame(failures(altered), ['signature.invalid', 'artifact.mismatch'], kind);
    const digestOnly = await verify({ bundle, pem: signer.pem, digestOnly: true });
    t.match(
      digestOnly,
      { verdict: 'could_not_check', summary: /the signature is over the file itself/ },
      kind,
    );
    t.equal((await verify({ bundle, pem: makeSigner(kind).pem })).verdict, 'not_verified', kind);
  }
});

t.test('every kind of entry is understood, and rejected when it is about something else', async (t) => {
  const signer = makeSigner('P-256');
  const log = makeLog();
  const { json, pae, payload } = statementBundle(artifact, signer);
  const [sig] = (json.dsseEnvelope as { signatures: { sig: string }[] }).signatures;
  const signature = Buffer.from(sig!.sig, 'base64');
  const other = statementBundle(Buffer.from('another'), signer);
  const stranger = makeSigner('P-256');
  for (const [i, [kind, version, spec]] of dsseSpecs(pae, payload, signature, signer).entries()) {
    const name = `${kind} ${version}`;
    const found = await verify({
      bundle: withEntry(json, log, [kind, version, spec]),
      pem: signer.pem,
      root: log.trustedRoot,
    });
    t.match(found, { verdict: 'verified', existedBy: new Date((INTEGRATED_TIME + 1) * 1000) }, name);
    t.match(found.summary, 'it existed no later than 2025-06-15T15:06:41Z', name);
    const wrong = [
      dsseSpecs(other.pae, other.payload, signature, signer)[i]!,
      dsseSpecs(pae, payload, Buffer.from('another'), signer)[i]!,
      dsseSpecs(pae, payload, signature, stranger)[i]!,
    ];
    for (const spec of wrong) {
      const found = await verify({
        bundle: withEntry(json, log, spec),
        pem: signer.pem,
        root: log.trustedRoot,
      });
      t.strictSame(failures(found), ['entries.mismatch'], name);
    }
  }
});

t.test('a malformed trusted root is rejected with the position of the error', (t: Test) => {
  const { trustedRoot: root } = makeLog();
  const cases: [message: string, change: (root: ReturnType<typeof makeLog>['trustedRoot']) => unknown][] = [
    ['/mediaType: must be', (root) => Object.assign(root, { mediaType: 'text/plain' })],
    [
      '/tlogs/0/publicKey/validFor/start: is missing',
      (root) => delete root.tlogs[0]!.publicKey.validFor.start,
    ],
    [
      '/tlogs/0/publicKey/rawBytes: ',
      (root) => Object.assign(root.tlogs[0]!.publicKey, { rawBytes: 'AAAA' }),
    ],
    ['/tlogs/0/baseUrl: must be a URL', (root) => Object.assign(root.tlogs[0]!, { baseUrl: 'x' })],
    ['/tlogs: must be an array', (root) => Object.assign(root, { tlogs: {} })],
    ['/timestampAuthorities/0/certChain: is missing', (root) => root.timestampAuthorities.push({})],
  ];
  for (const [message, change] of cases) {
    const changed = structuredClone(root);
    change(changed);
    t.throws(
      () => parseTrustedRoot(JSON.stringify(changed)),
      { message: new RegExp(`^${message}`) },
      message,
    );
  }
  t.throws(() => parseTrustedRoot('[]'), { message: 'the document: must be an object' });
  t.throws(() => parseTrustedRoot('{'), { message: /is not JSON/ });
  t.end();
});

t.test('a key of another kind is rejected', (t: Test) => {
  const x25519 = Buffer.from('302a300506032b656e032100'.padEnd(88, '0'), 'hex');
  t.throws(() => parsePublicKey(x25519), { message: 'is neither an Ed25519 nor an ECDSA key' });
  t.throws(() => parsePublicKey(Buffer.from('junk')), { name: 'FormatError' });
  t.end();
});
