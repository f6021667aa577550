import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import t from 'tap';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { toPem } from '../../../src/proof/asn1/pem.js';
import { concatBytes, fromUtf8, toHex, utf8 } from '../../../src/proof/bytes/encoding.js';
import { sha256 } from '../../../src/proof/bytes/primitives.js';
import { MANIFEST_PREDICATE_TYPE, manifestEnvelope } from '../../../src/proof/export/manifest.js';
import { readManifest } from '../../../src/proof/export/read-manifest.js';
import { verifyManifest } from '../../../src/proof/export/verify-manifest.js';
import { IN_TOTO_PAYLOAD_TYPE, preAuthEncoding } from '../../../src/proof/statement/dsse.js';
import { statementBytes } from '../../../src/proof/statement/statement.js';
import { readTrust } from '../../../src/proof/verify/trust.js';
import { OPENSSL } from '../../support/foreign/openssl.js';
import { verifyEnvelopeWithSigstore } from '../../support/judging/foreign-verifiers.js';
import { isLong } from '../../support/long.js';
import { makeService, NOW, PROJECT } from '../sample.js';
import {
  type Bundle,
  changed,
  failures,
  good as goodBundle,
  other,
  rootsOf,
  sample,
  service,
  trustRoots,
  verify,
} from '../verifying.js';
import { manifestFields, signManifest } from './manifest-sample.js';

const trust = readTrust(trustRoots).trust!;
const options = { trust, environment: 'live', now: NOW } as const;
const fields = manifestFields();
const good = signManifest(service, fields);

t.test('a manifest signed by the environment’s key verifies', async (t) => {
  t.strictSame(await verifyManifest(good, options), { manifest: fields });
  t.strictSame(await verifyManifest(good, { ...options, project: PROJECT }), { manifest: fields });
});

t.test('a manifest after a byte order mark verifies, and after anything else does not', async (t) => {
  const mark = Uint8Array.of(0xef, 0xbb, 0xbf);
  t.strictSame(await verifyManifest(concatBytes(mark, good), options), { manifest: fields });
  for (const before of [concatBytes(mark, mark), Uint8Array.of(0x20), mark.subarray(1)]) {
    t.match(await verifyManifest(concatBytes(before, good), options), { manifest: undefined });
  }
});

t.test('a manifest by another key, of another environment or project does not', async (t) => {
  const testService = await makeService(t.testdir(), 'test');
  const testRoots = rootsOf(testService);
  const both = readTrust({
    ...trustRoots,
    dsse_signing_keys: [trustRoots.dsse_signing_keys, testRoots.dsse_signing_keys].flat(),
  }).trust!;
  const test = signManifest(testService, manifestFields({ environment: 'test' }));
  const cases: [what: string, bytes: Uint8Array, change: object, problem: RegExp][] = [
    ['another service', signManifest(other.service, fields), {}, /not signed by a key of the trust roots/],
    ['the test key', signManifest(testService, fields), { trust: both }, /not signed by a key/],
    ['a test manifest', test, { trust: both }, /is of the test environment, not live/],
    ['a live manifest', good, { trust: both, environment: 'test' }, /is of the live environment, not test/],
    ['another project', good, { project: 'prj_01JX5WQ0ZZZZZZZZZZZZZZZZZ0' }, /is of prj_.*, not of prj_/],
    ['no signature', manifestEnvelope(readManifest(good).statement, new Uint8Array()), {}, /not signed/],
    ['nothing', new Uint8Array(), {}, /is not JSON/],
  ];
  for (const [what, bytes, change, problem] of cases) {
    t.match(await verifyManifest(bytes, { ...options, ...change }), { problem }, what);
  }
  t.match(await verifyManifest(test, { trust: both, environment: 'test', now: NOW }), { manifest: {} });
});

t.test('the key must have been trusted at some time since the manifest’s day', async (t) => {
  const at = (iso: string) => timestampFromDate(new Date(iso));
  const cases: [from: string, to: string, isVerified: boolean][] = [
    ['2025-01-01T00:00:00Z', '2025-06-06T23:59:59Z', false],
    ['2025-01-01T00:00:00Z', '2025-06-07T00:00:00Z', true],
    ['2025-06-07T11:00:00Z', '2026-01-01T00:00:00Z', true],
    ['2025-06-08T00:00:00Z', '2026-01-01T00:00:00Z', false],
  ];
  for (const [from, to, isVerified] of cases) {
    const key = {
      environment: Environment.LIVE,
      fingerprintSha256: toHex(sha256(service.dsse.publicKey)),
      algorithm: 'ecdsa-p256-sha256',
      publicKeyPem: toPem('PUBLIC KEY', service.dsse.publicKey),
      validFrom: at(from),
      validTo: at(to),
    };
    const { trust } = readTrust(rootsOf(service, { dsseSigningKeys: [key] }));
    const found = await verifyManifest(good, { ...options, trust: trust! });
    t.equal(found.manifest !== undefined, isVerified, `${from} to ${to}`);
  }
});

t.test('a signed submission statement is no manifest, and a signed manifest is no bundle', async (t) => {
  const { payload, signatures } = (goodBundle as unknown as Bundle).sigstore_bundle.dsseEnvelope;
  const submission = new Uint8Array(Buffer.from(payload, 'base64'));
  t.strictSame(submission, statementBytes(sample.statement));
  const signature = new Uint8Array(Buffer.from(signatures[0]!.sig, 'base64'));
  const found = await verifyManifest(manifestEnvelope(submission, signature), options);
  t.match(found, { problem: `a statement's predicateType is not ${MANIFEST_PREDICATE_TYPE}` });
  const swapped = changed((bundle) => {
    bundle.sigstore_bundle.dsseEnvelope = JSON.parse(fromUtf8(good));
  });
  t.ok(failures(await verify(swapped)).includes('leaf.body_mismatch'));
});

t.test(
  'a manifest that is signed in a form of tomorrow is not judged, one that is not signed is',
  async (t) => {
    const { payload } = JSON.parse(fromUtf8(good));
    const text = Buffer.from(payload, 'base64').toString().replace('"predicate":{', '"predicate":{"a":1,');
    const statement = utf8(text);
    const signature = service.dsse.sign(preAuthEncoding('application/vnd.in-toto+json', statement));
    t.match(await verifyManifest(manifestEnvelope(statement, signature), options), { isUnknown: true });
    const forged = await verifyManifest(
      manifestEnvelope(statement, signature.with(40, signature[40]! ^ 1)),
      options,
    );
    t.match(forged, { problem: /is not canonical, or has unknown members/, isUnknown: undefined });
  },
);

t.test('a manifest with one flipped bit does not verify', async (t) => {
  const property = fc.asyncProperty(fc.nat(good.length - 1), fc.nat(7), async (at, bit) => {
    const { manifest } = await verifyManifest(good.with(at, good[at]! ^ (1 << bit)), options);
    return manifest === undefined;
  });
  const numRuns = isLong ? 2000 : 300;
  await fc.assert(property, { numRuns });
  t.pass(`${numRuns} flips`);
});

t.test('openssl verifies the signature over the pre-authentication encoding', async (t) => {
  const { payload, payloadType, signatures } = JSON.parse(fromUtf8(good));
  t.equal(payloadType, IN_TOTO_PAYLOAD_TYPE);
  const dir = t.testdir({
    pae: Buffer.from(preAuthEncoding(payloadType, Buffer.from(payload, 'base64'))),
    signature: Buffer.from(signatures[0].sig, 'base64'),
    'key.pem': toPem('PUBLIC KEY', service.dsse.publicKey),
  });
  const [key, signature, pae] = ['key.pem', 'signature', 'pae'].map((name) => join(dir, name));
  const args = ['dgst', '-sha256', '-verify', key!, '-signature', signature!, pae!];
  t.equal(execFileSync(OPENSSL, args, { encoding: 'utf8' }), 'Verified OK\n');
});

t.test('@sigstore/verify accepts the envelope, and no changed one', async (t) => {
  const envelope = JSON.parse(fromUtf8(good));
  const key = toPem('PUBLIC KEY', service.dsse.publicKey);
  t.doesNotThrow(() => verifyEnvelopeWithSigstore(envelope, key));
  const payload = Buffer.from(`${Buffer.from(envelope.payload, 'base64')} `).toString('base64');
  t.throws(() => verifyEnvelopeWithSigstore({ ...envelope, payload }, key));
  t.throws(() => verifyEnvelopeWithSigstore(envelope, toPem('PUBLIC KEY', other.service.dsse.publicKey)));
});
