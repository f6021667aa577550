import { type JsonObject, toBinary, toJson } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import t from 'tap';
import { ProofBundleSchema } from '../../gen/attestation/v1/bundle_pb.js';
import { Environment } from '../../gen/attestation/v1/environment_pb.js';
import { type TrustRoots, TrustRootsSchema } from '../../gen/attestation/v1/service_pb.js';
import { toBase64, toHex, utf8 } from '../../src/proof/encoding.js';
import { encodeSignatureLine, parseNote } from '../../src/proof/note.js';
import { sha256 } from '../../src/proof/primitives.js';
import type { SigstoreBundle } from '../../src/proof/sigstore-bundle.js';
import { type Verification, type VerifyOptions, verifyBundle } from '../../src/proof/verify.js';
import {
  ARTIFACT,
  COSIGNED_AT,
  ed25519,
  METADATA,
  makeSample,
  makeService,
  makeTrustRoots,
  NOW,
  restJson,
  type Service,
  STAMPED_AT,
  SUBMISSION_ID,
} from './sample.js';

const STEPS = ['shape', 'statement', 'signature', 'leaf', 'inclusion', 'checkpoint', 'witnesses', 'policy'];

const service = await makeService(t.testdir());
const sample = await makeSample(service);
const good = restJson(ProofBundleSchema, sample.bundle);
const other = await makeSample(await makeService(t.testdir({ other: {} })));
const otherGood = restJson(ProofBundleSchema, other.bundle) as unknown as Bundle;

/** A bundle's JSON, as far as the tests change it. */
type Bundle = {
  media_type: unknown;
  submission: JsonObject;
  batch: JsonObject;
  sigstore_bundle: SigstoreBundle;
  checkpoints: { tree_size: unknown; note: string; inclusion_proof: string[] }[];
  witnesses: {
    name: unknown;
    kind: unknown;
    tree_size: unknown;
    evidence: string;
    detail: JsonObject;
    landed_at: unknown;
  }[];
};

function changed(change: (bundle: Bundle) => unknown): JsonObject {
  const copy = structuredClone(good);
  change(copy as unknown as Bundle);
  return copy;
}

function rootsOf(of: Service, change?: Parameters<typeof makeTrustRoots>[1]): JsonObject {
  return restJson(TrustRootsSchema, makeTrustRoots(of, change));
}

const trustRoots = rootsOf(service);

function verify(bundle: unknown, options: Partial<VerifyOptions> = {}): Promise<Verification> {
  return verifyBundle(bundle, { trustRoots, artifact: ARTIFACT, now: NOW, ...options });
}

function failures({ steps }: Verification): string[] {
  return steps.flatMap(({ checks }) =>
    checks.filter(({ status }) => status === 'failed').map(({ code }) => code),
  );
}

function blocked({ steps }: Verification): string[] {
  return steps.flatMap(({ checks }) => checks.filter(({ blocking }) => blocking).map(({ code }) => code));
}

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

t.test('the result says in one sentence what is proven, by whom, and what is not', async (t) => {
  const result = await verify(good);
  t.equal(
    result.summary,
    `This artifact was attested under ${SUBMISSION_ID} and existed no later than ${STAMPED_AT.toISOString()} ` +
      'according to tsa (the operator’s own clock).',
  );
  t.strictSame(result.existedBy, STAMPED_AT);
  t.strictSame(result.statement, sample.statement);
  t.match(result.witnesses, [
    { name: 'log', kind: 'transparency_log', status: 'passed', treeSize: 1000 },
    { name: 'tsa', kind: 'rfc3161', status: 'passed', treeSize: 1000, time: STAMPED_AT, operator: 'self' },
    { name: 'w1', kind: 'log_witness', status: 'passed', treeSize: 1300, time: COSIGNED_AT },
  ]);
  t.strictSame(result.unproven, [
    '/batch/id',
    '/batch/first_index',
    '/witnesses/0/landed_at',
    '/witnesses/1/landed_at',
    '/witnesses/2/landed_at',
  ]);
  const onlyCosigned = await makeSample(service, ['log', 'cosigner']);
  const cosigned = await verify(onlyCosigned.bundle, { policy: { required: ['w1', 'log'] } });
  t.match(cosigned.summary, `no later than ${COSIGNED_AT.toISOString()} according to w1.`);
  const onlyLogged = await makeSample(service, []);
  const logged = await verify(onlyLogged.bundle, { policy: { required: ['live.log.example'] } });
  t.equal(logged.verdict, 'verified');
  t.equal(logged.summary, `This artifact was attested under ${SUBMISSION_ID}; no witness says when.`);
  t.equal(logged.steps[6]!.status, 'not_checked');
});

t.test('the artifact asked about must be the one attested', async (t) => {
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

t.test('a test bundle verifies only when a test bundle is asked for', async (t) => {
  const testService = await makeService(t.testdir(), 'test');
  const { bundle } = await makeSample(testService);
  const roots = rootsOf(testService);
  const asked = await verify(bundle, { trustRoots: roots, environment: 'test' });
  t.equal(asked.verdict, 'verified');
  t.match(asked.summary, `${SUBMISSION_ID} (test) and existed`);
  const notAsked = await verify(bundle, { trustRoots: roots });
  t.equal(notAsked.verdict, 'not_verified');
  const codes = ['environment.mismatch', 'signature.wrong_environment', 'checkpoint.wrong_environment'];
  t.strictSame(failures(notAsked).slice(0, 3), codes);
  const live = await verify(good, { environment: 'test' });
  t.strictSame(failures(live).slice(0, 3), codes);
});

t.test(
  'a changed bundle fails at the step that the change concerns, and every step is still reported',
  async (t) => {
    const entry = (bundle: Bundle) => bundle.sigstore_bundle.verificationMaterial.tlogEntries[0]!;
    const statement = Buffer.from(otherGood.sigstore_bundle.dsseEnvelope.payload, 'base64').toString();
    const cases: [code: string, change: (bundle: Bundle) => unknown][] = [
      ['statement.mismatch', (b) => Object.assign(b.submission, { id: 'sub_01JX5WQ3ZZZZZZZZZZZZZZZZZ0' })],
      [
        'statement.mismatch',
        (b) => Object.assign(b.submission, { submitted_at: '2025-06-07T11:59:59.124Z' }),
      ],
      [
        'statement.mismatch',
        (b) => Object.assign(b.submission, { submitted_at: '2025-06-07T11:59:59.123001Z' }),
      ],
      ['statement.mismatch', (b) => Object.assign(b.submission, { environment: 'test' })],
      ['statement.mismatch', (b) => Object.assign(b.submission, { artifact_sha256: '00'.repeat(32) })],
      [
        'statement.malformed',
        (b) => Object.assign(b.sigstore_bundle.dsseEnvelope, { payload: toBase64(utf8(`${statement} `)) }),
      ],
      [
        'statement.malformed',
        (b) => Object.assign(b.sigstore_bundle.dsseEnvelope, { payload: toBase64(utf8('{}')) }),
      ],
      ['statement.malformed', (b) => Object.assign(b.sigstore_bundle.dsseEnvelope, { payload: '' })],
      [
        'statement.malformed',
        (b) => Object.assign(b.sigstore_bundle.dsseEnvelope, { payload: toBase64(utf8('['.repeat(12_000))) }),
      ],
      [
        'signature.invalid',
        (b) =>
          Object.assign(b.sigstore_bundle.dsseEnvelope, {
            payload: otherGood.sigstore_bundle.dsseEnvelope.payload,
          }),
      ],
      [
        'signature.invalid',
        (b) =>
          Object.assign(b.sigstore_bundle.dsseEnvelope.signatures[0]!, {
            sig: otherGood.sigstore_bundle.dsseEnvelope.signatures[0]!.sig,
          }),
      ],
      [
        'leaf.body_mismatch',
        (b) => Object.assign(entry(b), { canonicalizedBody: toBase64(utf8('another leaf')) }),
      ],
      ['leaf.hash_mismatch', (b) => Object.assign(b.submission, { leaf_sha256: '00'.repeat(32) })],
      [
        'inclusion.invalid',
        (b) => Object.assign(b.checkpoints[1]!, { inclusion_proof: b.checkpoints[0]!.inclusion_proof }),
      ],
      ['inclusion.invalid', (b) => b.checkpoints[1]!.inclusion_proof.pop()],
      ['inclusion.not_in_batch', (b) => Object.assign(b.batch, { first_index: 701 })],
      [
        'checkpoint.bad_signature',
        (b) => Object.assign(b.checkpoints[1]!, { note: resigned(b.checkpoints[1]!.note) }),
      ],
      ['checkpoint.bad_cosignature', (b) => spoilCosignature(b)],
      ['witness.no_checkpoint', (b) => b.checkpoints.pop()],
      ['witness.wrong_name', (b) => Object.assign(b.witnesses[0]!, { name: 'tsa2' })],
      [
        'witness.not_in_note',
        (b) => Object.assign(b.witnesses[0]!, { evidence: toBase64(utf8(b.checkpoints[1]!.note)) }),
      ],
      ['witness.detail_mismatch', (b) => Object.assign(b.witnesses[0]!.detail, { log_index: 651 })],
      [
        'witness.rfc3161.imprint_mismatch',
        (b) => Object.assign(b.witnesses[1]!, { evidence: otherGood.witnesses[1]!.evidence, detail: {} }),
      ],
      ['witness.rfc3161.imprint_mismatch', (b) => Object.assign(b.witnesses[1]!, { tree_size: 1300 })],
      ['witness.rfc3161.nonce_mismatch', (b) => Object.assign(b.witnesses[1]!.detail, { nonce: '00' })],
      ['witness.rfc3161.malformed', (b) => Object.assign(b.witnesses[1]!, { evidence: '' })],
      [
        'witness.detail_mismatch',
        (b) => Object.assign(b.witnesses[1]!.detail, { gen_time: '2024-06-07T12:00:01.000Z' }),
      ],
      ['witness.detail_mismatch', (b) => Object.assign(b.witnesses[1]!.detail, { note: 'more' })],
      ['witness.malformed', (b) => Object.assign(b.witnesses[1]!.detail, { nonce: 'zz' })],
      [
        'witness.not_in_note',
        (b) => Object.assign(b.witnesses[2]!, { evidence: otherGood.witnesses[2]!.evidence }),
      ],
      ['witness.wrong_name', (b) => Object.assign(b.witnesses[1]!, { name: 'tsa2' })],
      ['witness.wrong_name', (b) => Object.assign(b.witnesses[2]!, { name: 'w2' })],
      ['witness.not_in_note', (b) => Object.assign(b.witnesses[2]!, { tree_size: 1000 })],
      ['witness.malformed', (b) => Object.assign(b.witnesses[2]!, { evidence: '' })],
      ['policy.missing_witness', (b) => b.witnesses.splice(1, 1)],
    ];
    for (const [code, change] of cases) {
      const result = await verify(changed(change));
      t.equal(result.verdict, 'not_verified', code);
      t.ok(failures(result).includes(code), `${code} in ${failures(result)}`);
      t.strictSame(
        result.steps.map(({ name }) => name),
        STEPS,
      );
      t.match(result.summary, /^Not verified: /);
    }
  },
);

/** The same checkpoint with its log's line replaced by a signature of nobody. */
function resigned(note: string): string {
  const [line] = parseNote(note).signatures;
  const forged = encodeSignatureLine({ ...line!, signature: ed25519().sign(utf8(parseNote(note).text)) });
  return note.replace(encodeSignatureLine(line!), forged);
}

function spoilCosignature(bundle: Bundle): void {
  const line = parseNote(bundle.checkpoints[1]!.note).signatures[1]!;
  const spoiled = encodeSignatureLine({
    ...line,
    signature: line.signature.with(20, line.signature[20]! ^ 1),
  });
  bundle.checkpoints[1]!.note = bundle.checkpoints[1]!.note.replace(encodeSignatureLine(line), spoiled);
  bundle.witnesses[2]!.evidence = toBase64(utf8(spoiled));
}

t.test('a misshapen bundle is refused with every wrong member named', async (t) => {
  const result = await verify(
    changed((b) => {
      Object.assign(b, { media_type: 'x', extra: 1 });
      Object.assign(b.submission, { id: 'sub_1', leaf_sha256: 'AB', environment: 'prod' });
      Object.assign(b.checkpoints[0]!, { tree_size: '01' });
      b.checkpoints[1]!.inclusion_proof[0] = 'AB==';
      Object.assign(b.witnesses[0]!, { kind: 3, landed_at: 'yesterday', evidence: 7 });
    }),
  );
  t.equal(result.verdict, 'not_verified');
  t.strictSame(
    result.steps[0]!.checks.map(({ path }) => path).sort(),
    [
      '/checkpoints/0/tree_size',
      '/checkpoints/1/inclusion_proof/0',
      '/extra',
      '/submission/environment',
      '/witnesses/0/evidence',
      '/witnesses/0/kind',
      '/witnesses/0/landed_at',
    ].sort(),
    'what is wrong by itself',
  );
  const second = await verify(
    changed((b) => {
      Object.assign(b, { media_type: 'x' });
      Object.assign(b.submission, { id: 'sub_1', leaf_sha256: 'AB' });
      Object.assign(b.batch, { root_hash: '00'.repeat(32), first_index: 1000 });
      Object.assign(b.sigstore_bundle, { mediaType: 'x', extra: {} });
      b.sigstore_bundle.verificationMaterial.tlogEntries[0]!.inclusionProof.hashes.push('AAAA');
    }),
  );
  t.strictSame(
    second.steps[0]!.checks.map(({ path }) => path).sort(),
    [
      '/batch/first_index',
      '/batch/root_hash',
      '/media_type',
      '/sigstore_bundle/extra',
      '/sigstore_bundle/mediaType',
      `/sigstore_bundle/verificationMaterial/tlogEntries/0/inclusionProof/hashes/${sample.bundle.checkpoints[0]!.inclusionProof.length}`,
      '/submission/id',
      '/submission/leaf_sha256',
    ].sort(),
    'what is wrong beside the rest',
  );
  t.ok(second.steps.slice(1).every(({ status }) => status === 'not_checked'));
});

t.test('hostile input is refused, quickly and without an exception', async (t) => {
  const struct = (value: unknown) => changed((b) => Object.assign(b.witnesses[0]!, { detail: value }));
  const deep = JSON.parse(`${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`);
  const cyclic: Record<string, unknown> = {};
  cyclic.self = cyclic;
  const throwing = Object.defineProperty({}, 'submission', {
    enumerable: true,
    get() {
      throw new Error('boo');
    },
  });
  const cases: [string, unknown][] = [
    ['nothing', undefined],
    ['null', null],
    ['a number', 7],
    ['an array', []],
    ['an empty object', {}],
    ['empty text', ''],
    ['text that is no JSON', '{'],
    ['bytes that are no UTF-8', Uint8Array.of(0xff)],
    ['the protobuf binary', toBinary(ProofBundleSchema, sample.bundle)],
    ['a very long text', ' '.repeat(5 * 1024 * 1024)],
    ['deeply nested text', '['.repeat(100_000)],
    ['both spellings of a member', { ...good, mediaType: good.media_type as string }],
    ['__proto__ as a member', JSON.parse(`{"__proto__":{"media_type":"x"},${JSON.stringify(good).slice(1)}`)],
    ['__proto__ in free-form JSON', struct(JSON.parse('{"a":{"__proto__":{"polluted":true}}}'))],
    ['deep free-form JSON', struct(deep)],
    ['cyclic free-form JSON', struct(cyclic)],
    [
      'broad free-form JSON',
      struct(Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`k${i}`, i]))),
    ],
    ['a function in free-form JSON', struct({ a: () => 1 })],
    ['a long text', changed((b) => Object.assign(b.witnesses[0]!, { evidence: 'A'.repeat(1_000_000) }))],
    ['too many witnesses', changed((b) => b.witnesses.push(...Array(100).fill(b.witnesses[0])))],
    ['too many hashes', changed((b) => b.checkpoints[0]!.inclusion_proof.push(...Array(100).fill('AAAA')))],
    ['the same witness twice', changed((b) => b.witnesses.push(b.witnesses[0]!))],
    ['the same checkpoint twice', changed((b) => b.checkpoints.push(b.checkpoints[1]!))],
    ['checkpoints in another order', changed((b) => b.checkpoints.reverse())],
    [
      'a checkpoint of another log',
      changed((b) =>
        Object.assign(b.checkpoints[1]!, {
          note: otherGood.checkpoints[1]!.note.replaceAll('live.', 'life.'),
        }),
      ),
    ],
    ['no checkpoints', changed((b) => Object.assign(b, { checkpoints: [] }))],
    ['a negative size', changed((b) => Object.assign(b.batch, { tree_size: -1 }))],
    ['a size beyond 2^53', changed((b) => Object.assign(b.batch, { tree_size: 2 ** 60 }))],
    ['a name with escape codes', changed((b) => Object.assign(b.witnesses[1]!, { name: '\u001b[2Jtsa' }))],
    ['a member that throws', throwing],
  ];
  for (const [what, input] of cases) {
    const result = await verify(input);
    t.not(result.verdict, 'verified', what);
    t.strictSame(
      result.steps.map(({ name }) => name),
      STEPS,
    );
    t.notMatch(JSON.stringify(result), /boo|\\u001b/);
  }
  t.notOk('polluted' in {});
});

t.test('a report shows names out of a bundle as plain text only', async (t) => {
  const result = await verify({ ...good, '\u001b[31m\u202e': 1 });
  t.equal(result.steps[0]!.checks[0]!.path, '/?[31m?');
});

t.test('a bundle is worth nothing under the trust roots of another service', async (t) => {
  const result = await verify(good, { trustRoots: rootsOf(other.service) });
  t.equal(result.verdict, 'not_verified');
  t.strictSame(failures(result), [
    'signature.untrusted_key',
    'checkpoint.unknown_log',
    'checkpoint.unknown_log',
    'witness.not_signed',
    'witness.rfc3161.signer_untrusted',
    'witness.bad_cosignature',
    'policy.missing_witness',
  ]);
  t.strictSame(blocked(result), ['leaf.no_key']);
});

t.test('trust roots that cannot be read, or contradict themselves, check nothing', async (t) => {
  const change = (member: string, value: unknown) => ({ ...trustRoots, [member]: value });
  const [dsse] = trustRoots.dsse_signing_keys as JsonObject[];
  const [log] = trustRoots.transparency_logs as JsonObject[];
  const [otherLog] = rootsOf(other.service).transparency_logs as JsonObject[];
  const [otherDsse] = rootsOf(other.service).dsse_signing_keys as JsonObject[];
  const cases: unknown[] = [
    undefined,
    null,
    'text',
    [],
    change('dsse_signing_keys', {}),
    change('dsse_signing_keys', [{ ...dsse, public_key_pem: 'x' }]),
    change('dsse_signing_keys', [{ ...dsse, public_key_pem: otherDsse!.public_key_pem }]),
    change('dsse_signing_keys', [{ ...dsse, valid_from: 'once' }]),
    change('transparency_logs', [{ ...log, verifier_key: 'x+y+z' }]),
    change('transparency_logs', [{ ...log, origin: 'elsewhere.example' }]),
    change('log_witnesses', [{ name: 'w1', verifier_key: otherLog!.verifier_key }]),
    change('timestamp_authorities', [{ name: 'tsa', cert_chain_pem: ['-----BEGIN CERTIFICATE-----'] }]),
  ];
  for (const roots of cases) {
    const result = await verify(good, { trustRoots: roots });
    t.equal(result.verdict, 'could_not_check');
    t.match(result.summary, /^Could not be checked: the trust roots cannot be read/);
    t.equal(result.steps[0]!.status, 'passed');
  }
});

t.test('the signing key must have been trusted when the earliest witness vouched', async (t) => {
  const keyWith = (validity: { validFrom?: Date; validTo?: Date }) =>
    rootsOf(service, {
      dsseSigningKeys: makeTrustRoots(service).dsseSigningKeys.map((key) => ({
        ...key,
        ...(validity.validFrom && { validFrom: timestampFromDate(validity.validFrom) }),
        ...(validity.validTo && { validTo: timestampFromDate(validity.validTo) }),
      })),
    });
  const at = (offsetMs: number) => new Date(STAMPED_AT.getTime() + offsetMs);
  const years = 5 * 365 * 86_400_000;
  const later = { now: at(years) };
  t.equal(
    (await verify(good, { trustRoots: keyWith({ validTo: at(0) }), ...later })).verdict,
    'verified',
    'retired since',
  );
  t.equal(
    (await verify(good, { trustRoots: keyWith({ validFrom: at(30_000) }) })).verdict,
    'verified',
    'clocks differ',
  );
  for (const validity of [{ validTo: at(-1) }, { validFrom: at(120_000) }]) {
    const result = await verify(good, { trustRoots: keyWith(validity) });
    t.strictSame(failures(result), ['signature.key_not_valid']);
  }
  const { bundle } = await makeSample(service, ['log']);
  const policy = { required: ['log'] };
  const retired = { trustRoots: keyWith({ validTo: at(0) }), policy };
  t.equal((await verify(bundle, { ...retired, now: at(0) })).verdict, 'verified', 'no witness, still in use');
  t.strictSame(failures(await verify(bundle, { ...retired, now: at(1) })), ['signature.key_not_valid']);
});

t.test('an authority counts only for stamps of the time it was trusted', async (t) => {
  const authority = (change: Partial<TrustRoots['timestampAuthorities'][number]>) =>
    makeTrustRoots(service).timestampAuthorities.map((known) => ({ ...known, ...change }));
  const early = timestampFromDate(new Date(STAMPED_AT.getTime() - 1));
  const ended = rootsOf(service, { timestampAuthorities: authority({ validTo: early }) });
  const result = await verify(good, { trustRoots: ended });
  t.strictSame(failures(result), ['witness.not_trusted_then', 'policy.missing_witness']);
  const several = [
    ...authority({ validTo: early }),
    ...makeTrustRoots(other.service).timestampAuthorities,
    ...authority({}),
  ];
  t.equal(
    (await verify(good, { trustRoots: rootsOf(service, { timestampAuthorities: several }) })).verdict,
    'verified',
  );
});

t.test(
  'a required witness that cannot be checked leaves the verdict open, a missing one fails it',
  async (t) => {
    const { bundle } = await makeSample(service, ['log', 'tsa', 'calendar']);
    t.equal((await verify(bundle)).verdict, 'verified', 'not required');
    const calendar = (await verify(bundle)).witnesses.find(({ name }) => name === 'calendar');
    t.match(calendar, { status: 'not_checked', code: 'witness.not_checkable', kind: 'opentimestamps' });
    const open = await verify(bundle, { policy: { required: ['tsa', 'calendar'] } });
    t.equal(open.verdict, 'could_not_check');
    t.strictSame(blocked(open), ['policy.not_checkable']);
    const failed = await verify(bundle, { policy: { required: ['calendar', 'nobody'] } });
    t.equal(failed.verdict, 'not_verified');
    t.strictSame(failures(failed), ['policy.missing_witness']);
    t.equal((await verify(bundle, { policy: { required: [] } })).verdict, 'verified');
  },
);

t.test('the newest policy of the environment decides, and without one the verdict is open', async (t) => {
  const policies = [
    { environment: Environment.LIVE, version: 1, required: ['nobody'] },
    { environment: Environment.LIVE, version: 3, required: ['tsa', 'w1', 'log'] },
    { environment: Environment.LIVE, version: 2, required: ['nobody'] },
    { environment: Environment.TEST, version: 9, required: ['nobody'] },
  ];
  t.equal((await verify(good, { trustRoots: rootsOf(service, { policies }) })).verdict, 'verified');
  const result = await verify(good, { trustRoots: rootsOf(service, { policies: policies.slice(3) }) });
  t.equal(result.verdict, 'could_not_check');
  t.strictSame(blocked(result), ['policy.unknown']);
});

t.test(
  'a witness or signature that the trust roots do not know is shown as unchecked, never as passed',
  async (t) => {
    const roots = rootsOf(service, { logWitnesses: [], timestampAuthorities: [] });
    const result = await verify(good, { trustRoots: roots, policy: { required: ['log'] } });
    t.equal(result.verdict, 'verified');
    t.match(result.summary, '; no witness says when.');
    t.match(
      result.witnesses.map(({ name, status, code }) => ({ name, status, code })),
      [
        { name: 'log', status: 'passed' },
        { name: 'tsa', status: 'not_checked', code: 'witness.unknown' },
        { name: 'w1', status: 'not_checked', code: 'witness.unknown' },
      ],
    );
    const codes = result.steps.flatMap(({ checks }) => checks.map(({ code }) => code));
    t.ok(codes.includes('checkpoint.unknown_signature'));
    t.strictSame(result.unproven.slice(-2), ['/witnesses/1', '/witnesses/2']);
    const required = await verify(good, { trustRoots: roots });
    t.equal(required.verdict, 'could_not_check');
  },
);

t.test(
  'a bundle with any byte flipped does not verify, save in what it is reported not to prove',
  async (t) => {
    const { bundle } = await makeSample(service, ['log', 'cosigner']);
    const policy = { required: ['w1'] };
    const json = restJson(ProofBundleSchema, bundle);
    t.equal((await verify(json, { policy })).verdict, 'verified');
    t.strictSame(await wronglyVerified(json, () => true, { policy }), []);
  },
);

t.test('the same holds for a time stamp, of whose bytes some are flipped here', async (t) => {
  // Each takes milliseconds to refuse; the test of time stamps flips them all.
  const isSampled = (path: string, at: number) => path.startsWith('/witnesses/1/') && at % 8 === 0;
  t.strictSame(await wronglyVerified(good, isSampled), []);
});

/** Flips a bit of each byte of the JSON's text whose change `isWanted`, and names the changes that verify all the same. */
async function wronglyVerified(
  json: JsonObject,
  isWanted: (path: string, at: number) => boolean,
  options: Partial<VerifyOptions> = {},
): Promise<string[]> {
  const bytes = utf8(JSON.stringify(json));
  const wrong: string[] = [];
  for (let at = 0; at < bytes.length; at++) {
    const flipped = bytes.with(at, bytes[at]! ^ (1 << ((at * 5) % 8)));
    const changes = differences(json, parsed(flipped));
    if (!changes.some((path) => isWanted(path, at))) continue;
    const { verdict, unproven } = await verify(flipped, options);
    if (verdict === 'verified' && !changes.every((path) => unproven.includes(path)))
      wrong.push(`${at}: ${changes}`);
  }
  return wrong;
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    return undefined;
  }
}

/** JSON pointers to the innermost members that differ. */
function differences(a: unknown, b: unknown, path = ''): string[] {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null)
    return a === b ? [] : [path];
  const [left, right] = [new Map(Object.entries(a)), new Map(Object.entries(b))];
  const names = new Set([...left.keys(), ...right.keys()]);
  return [...names].flatMap((name) => differences(left.get(name), right.get(name), `${path}/${name}`));
}
