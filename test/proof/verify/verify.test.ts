import { toJson } from '@bufbuild/protobuf';
import t from 'tap';
import { ProofBundleSchema } from '../../../gen/attestation/v1/bundle_pb.js';
import { TrustRootsSchema } from '../../../gen/attestation/v1/service_pb.js';
import { toHex, utf8 } from '../../../src/proof/bytes/encoding.js';
import { sha256 } from '../../../src/proof/bytes/primitives.js';
import { dsseKeyHint } from '../../../src/proof/statement/dsse.js';
import { instantText } from '../../../src/proof/verify/instant.js';
import type { VerifyOptions } from '../../../src/proof/verify/verify.js';
import { ARTIFACT, METADATA, makeService, PROJECT, STAMP_PROVES, SUBMISSION_ID } from '../sample.js';
import { makeSample } from '../sample-bundles.js';
import { makeTrustRoots } from '../sample-trust-roots.js';
import { COSIGNATURE_PROVES } from '../sample-witnesses.js';
import {
  blocked,
  changed,
  failures,
  good,
  other,
  rootsOf,
  STEPS,
  sample,
  service,
  trustRoots,
  verify,
} from '../verifying.js';

t.test('a good bundle verifies in every form it travels in', async (t) => {
  const forms: [string, unknown][] = [
    ['REST JSON', good],
    ['ProtoJSON', toJson(ProofBundleSchema, sample.bundle)],
    ['ProtoJSON with proto names', toJson(ProofBundleSchema, sample.bundle, { useProtoFieldName: true })],
    ['a message', sample.bundle],
    ['text', JSON.stringify(good, null, 2)],
    ['bytes', utf8(JSON.stringify(good))],
  ];
  for (const [what, form] of forms) {
    const result = await verify(form);
    t.equal(result.verdict, 'verified', what);
    t.strictSame(
      result.steps.map(({ name }) => name),
      STEPS,
    );
    t.ok(result.steps.every(({ status }) => status === 'passed'));
  }
});

t.test('a keyid that is empty, left out or the hint verifies, another one does not', async (t) => {
  const hint = dsseKeyHint(service.dsse.publicKey);
  const withKeyId = (keyid: unknown) =>
    changed((b) => Object.assign(b.sigstore_bundle.dsseEnvelope.signatures[0]!, { keyid }));
  const without = changed((b) =>
    Object.assign(b.sigstore_bundle.dsseEnvelope, {
      signatures: [{ sig: b.sigstore_bundle.dsseEnvelope.signatures[0]!.sig }],
    }),
  );
  for (const bundle of [withKeyId(hint), withKeyId(''), without])
    t.equal((await verify(bundle)).verdict, 'verified');
  const others = [dsseKeyHint(other.service.dsse.publicKey), `${hint} `, null, 7, { hint }];
  for (const keyid of others) {
    const result = await verify(withKeyId(keyid));
    t.strictSame([result.verdict, failures(result)], ['not_verified', ['shape.invalid']], `${keyid}`);
    t.match(result.summary, 'signatures/0/keyid');
  }
  const renamed = changed((b) =>
    Object.assign(b.sigstore_bundle.verificationMaterial.publicKey, {
      hint: dsseKeyHint(other.service.dsse.publicKey),
    }),
  );
  t.ok(failures(await verify(renamed)).includes('signature.untrusted_key'), 'the hint is what finds the key');
});

t.test('trust roots are read in every form they travel in', async (t) => {
  const message = makeTrustRoots(service);
  for (const roots of [
    trustRoots,
    message,
    toJson(TrustRootsSchema, message),
    { ...trustRoots, a_later_member: [{}] },
  ]) {
    t.equal((await verify(good, { trustRoots: roots })).verdict, 'verified');
  }
});

t.test('the summary states in one sentence the proven claims, their witnesses, and the rest', async (t) => {
  const result = await verify(good);
  t.equal(
    result.summary,
    `This artifact was attested under ${SUBMISSION_ID} by the project ${PROJECT} and existed no later than ` +
      `${instantText(STAMP_PROVES)} according to tsa (the operator’s own clock).`,
  );
  t.strictSame(result.existedBy, STAMP_PROVES);
  t.strictSame(result.statement, sample.statement);
  t.match(result.witnesses, [
    { name: 'log', kind: 'transparency_log', status: 'passed', treeSize: 1000 },
    { name: 'tsa', kind: 'rfc3161', status: 'passed', treeSize: 1000, time: STAMP_PROVES, operator: 'self' },
    { name: 'w1', kind: 'log_witness', status: 'passed', treeSize: 1300, time: COSIGNATURE_PROVES },
  ]);
  t.strictSame(result.unproven, [
    '/submission/submitted_at',
    '/batch/id',
    '/batch/first_index',
    '/witnesses/0/landed_at',
    '/witnesses/1/landed_at',
    '/witnesses/2/landed_at',
  ]);
  const onlyCosigned = await makeSample(service, ['log', 'cosigner']);
  const cosigned = await verify(onlyCosigned.bundle, { policy: { required: ['w1', 'log'] } });
  t.match(cosigned.summary, `no later than ${instantText(COSIGNATURE_PROVES)} according to w1.`);
  const onlyLogged = await makeSample(service, []);
  const logged = await verify(onlyLogged.bundle, { policy: { required: ['live.log.example'] } });
  t.equal(logged.verdict, 'verified');
  t.equal(
    logged.summary,
    `This artifact was attested under ${SUBMISSION_ID} by the project ${PROJECT}; no witness says when.`,
  );
  t.equal(logged.steps[6]!.status, 'not_checked');
});

t.test('submitted_at is not proven, and there is a remark if it is later than the proven time', async (t) => {
  const remarkOf = async (submittedAt: string) => {
    const { bundle } = await makeSample(service, ['log', 'tsa'], { submittedAt });
    const { verdict, steps, unproven } = await verify(bundle);
    t.equal(verdict, 'verified');
    t.ok(unproven.includes('/submission/submitted_at'));
    return steps[1]!.checks.find(({ code }) => code === 'statement.submitted_at_later');
  };
  for (const submittedAt of ['2025-06-07T11:59:59.123Z', STAMP_PROVES.toISOString()]) {
    t.equal(await remarkOf(submittedAt), undefined, submittedAt);
  }
  const remark = await remarkOf('2025-06-07T12:00:02.001Z');
  t.match(remark, {
    status: 'not_checked',
    message: '2025-06-07T12:00:02.001Z, later than the time that is',
  });
  t.notOk(remark?.blocking);
});

t.test('the given artifact must be the attested one', async (t) => {
  const digest = toHex(sha256(ARTIFACT));
  for (const options of [
    {},
    { artifact: undefined, artifactSha256: digest.toUpperCase() },
    { artifactSha256: digest },
  ]) {
    t.equal((await verify(good, options)).verdict, 'verified');
  }
  const wrong: Partial<VerifyOptions>[] = [
    { artifact: utf8('another') },
    { artifact: undefined, artifactSha256: toHex(sha256(utf8('another'))) },
    { artifactSha256: toHex(sha256(utf8('another'))) },
  ];
  for (const options of wrong) {
    const result = await verify(good, options);
    t.equal(result.verdict, 'not_verified');
    t.strictSame(failures(result), ['artifact.mismatch']);
    t.equal(result.summary, 'Not verified: the artifact is not the one that was attested.');
  }
});

t.test('without an artifact, or with a digest that is none, nothing is called verified', async (t) => {
  const none = await verify(good, { artifact: undefined });
  t.equal(none.verdict, 'could_not_check');
  t.strictSame(blocked(none), ['artifact.not_given']);
  t.equal(none.steps[1]!.status, 'not_checked');
  for (const artifactSha256 of ['', 'abc', `${'0'.repeat(63)}g`]) {
    const result = await verify(good, { artifact: undefined, artifactSha256 });
    t.equal(result.verdict, 'could_not_check');
    t.strictSame(blocked(result), ['artifact.invalid_digest']);
  }
});

t.test('metadata as text is read as the service reads it', async (t) => {
  const metadata = { ...METADATA, id: 9007199254740992 };
  const { bundle, salt } = await makeSample(service, ['log', 'tsa'], { metadata });
  const verdictOf = async (text: string | Uint8Array) => {
    const result = await verify(bundle, { metadata: text, metadataSalt: salt });
    return [result.verdict, ...failures(result), ...blocked(result)];
  };
  const text = JSON.stringify(metadata, null, 2);
  t.strictSame(await verdictOf(text), ['verified']);
  t.strictSame(await verdictOf(utf8(text)), ['verified']);
  t.equal(JSON.parse('9007199254740993'), metadata.id, 'what JSON.parse makes of another document');
  const changed = text.replace('9007199254740992', '9007199254740993');
  const unreadable = ['could_not_check', 'metadata.unreadable'];
  t.strictSame(await verdictOf(changed), unreadable);
  t.match(
    (await verify(bundle, { metadata: changed, metadataSalt: salt })).summary,
    '/id is an integer that JSON',
  );
  const twice = text.replace('"id"', '"id": 1, "id"');
  for (const wrong of [twice, '', '{', utf8(text).with(5, 0xff)])
    t.strictSame(await verdictOf(wrong), unreadable);
  t.strictSame(await verdictOf('[]'), ['not_verified', 'metadata.mismatch']);
});

t.test('metadata, when given, must open the commitment', async (t) => {
  const metadataSalt = toHex(sample.salt);
  const reordered = { purl: METADATA.purl, schema: METADATA.schema };
  for (const salt of [metadataSalt, metadataSalt.toUpperCase(), sample.salt]) {
    t.equal((await verify(good, { metadata: reordered, metadataSalt: salt })).verdict, 'verified');
  }
  const cyclic: Record<string, unknown> = {};
  cyclic.self = cyclic;
  const deep = JSON.parse(`${'['.repeat(50_000)}${']'.repeat(50_000)}`);
  const cases: [Partial<VerifyOptions>, verdict: string, code: string][] = [
    [
      { metadata: { ...METADATA, purl: 'pkg:npm/tap@21.8.1' }, metadataSalt },
      'not_verified',
      'metadata.mismatch',
    ],
    [{ metadata: METADATA, metadataSalt: '00'.repeat(32) }, 'not_verified', 'metadata.mismatch'],
    [{ metadata: null, metadataSalt }, 'not_verified', 'metadata.mismatch'],
    [{ metadata: METADATA }, 'could_not_check', 'metadata.no_salt'],
    [{ metadata: METADATA, metadataSalt: 'zz' }, 'could_not_check', 'metadata.unreadable'],
    [{ metadata: cyclic, metadataSalt }, 'could_not_check', 'metadata.unreadable'],
    [{ metadata: deep, metadataSalt }, 'could_not_check', 'metadata.unreadable'],
  ];
  for (const [options, verdict, code] of cases) {
    const result = await verify(good, options);
    t.equal(result.verdict, verdict, code);
    t.strictSame([...failures(result), ...blocked(result)], [code]);
  }
});

t.test('a test bundle verifies only if the test environment is requested', async (t) => {
  const testService = await makeService(t.testdir(), 'test');
  const { bundle } = await makeSample(testService);
  const roots = rootsOf(testService);
  const asked = await verify(bundle, { trustRoots: roots, environment: 'test' });
  t.equal(asked.verdict, 'verified');
  t.match(asked.summary, `${SUBMISSION_ID} (test) by the project ${PROJECT} and existed`);
  const notAsked = await verify(bundle, { trustRoots: roots });
  t.equal(notAsked.verdict, 'not_verified');
  const codes = ['environment.mismatch', 'signature.wrong_environment', 'checkpoint.wrong_environment'];
  t.strictSame(failures(notAsked).slice(0, 3), codes);
  const live = await verify(good, { environment: 'test' });
  t.strictSame(failures(live).slice(0, 3), codes);
});
