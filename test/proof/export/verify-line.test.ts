import type { JsonObject } from '@bufbuild/protobuf';
import fc from 'fast-check';
import t from 'tap';
import { utf8 } from '../../../src/proof/bytes/encoding.js';
import { createLineVerifier, type LineOptions } from '../../../src/proof/export/verify-line.js';
import { isLong } from '../../support/long.js';
import { makeService, NOW, PROJECT } from '../sample.js';
import { rootsOf, service, trustRoots } from '../verifying.js';
import { type Line, makeBatches } from './export-sample.js';

const OTHER_PROJECT = 'prj_01JX5WQ0ZZZZZZZZZZZZZZZZZ0';
const INVALID = { schema: 'purl', purl: 'not a purl' };
const CORRECTED = { schema: 'intoto.test_result.v0.1', result: 'PASSED' };

const [batch, second, foreign, deep] = await makeBatches(service, [
  { own: 3, others: 2 },
  { own: 1 },
  { own: 1, project: OTHER_PROJECT, metadata: INVALID },
  { own: 1, metadata: { schema: 'purl', list: [[[[[[[[[[[[[[[[[[[[[[[[[['x']]]]]]]]]]]]]]]]]]]]]]]]]] } },
]);
const good = batch!.lines[0]!;

function verifier(options: Partial<LineOptions> = {}) {
  return createLineVerifier({ trustRoots, now: NOW, ...options });
}

/** The line with a change made to it, as text. */
function changed(change: (line: Line) => unknown, line = good): string {
  const copy = structuredClone(line);
  change(copy);
  return JSON.stringify(copy);
}

t.test('a line verifies, with its place and proven time', async (t) => {
  const found = await verifier({ project: PROJECT })(utf8(JSON.stringify(good)));
  t.strictSame(found, {
    verdict: 'verified',
    reason: '',
    existedBy: new Date('2025-06-07T12:00:02.000Z'),
    facts: {
      submissionId: good.submission.id,
      project: PROJECT,
      batchId: batch!.id,
      log: 'live.log.example',
      logIndex: 2,
      firstIndex: 0,
      treeSize: 5,
      schema: 'purl',
    },
  });
});

t.test('a byte order mark before a line is ignored', async (t) => {
  t.match(await verifier()(utf8(`\ufeff${JSON.stringify(good)}`)), { verdict: 'verified', reason: '' });
});

t.test('deep metadata, a correction and a redaction verify', async (t) => {
  const { metadata_salt: _, ...unsalted } = good.submission;
  const redactedAt = '2025-06-08T00:00:00Z';
  const redacted = {
    ...unsalted,
    metadata: { schema: 'purl' },
    metadata_state: 'redacted',
    redacted_at: redactedAt,
  };
  const lines: Line[] = [
    deep!.lines[0]!,
    { ...good, submission: redacted },
    { ...good, submission: { ...redacted, metadata: { schema: 'another' } } },
    {
      ...foreign!.lines[0]!,
      submission: { ...foreign!.lines[0]!.submission, metadata: CORRECTED, attested_metadata: INVALID },
    },
  ];
  for (const line of lines)
    t.match(await verifier()(utf8(JSON.stringify(line))), { verdict: 'verified', reason: '' });
});

t.test('a line that differs from its attestation is not verified, with the reason', async (t) => {
  const set = (members: JsonObject) => changed(({ submission }) => Object.assign(submission, members));
  const redacted = {
    metadata: { schema: 'purl' },
    metadata_state: 'redacted',
    redacted_at: '2025-06-08T00:00:00Z',
  };
  const salt = String(good.submission.metadata_salt);
  const cases: [what: string, text: string, reason: RegExp][] = [
    [
      'another bundle',
      changed((line) => Object.assign(line, { bundle: second!.lines[0]!.bundle })),
      /\/id is not the bundle's/,
    ],
    [
      'a bundle of the batch',
      changed((line) => Object.assign(line, { bundle: batch!.lines[1]!.bundle })),
      /log_index is not/,
    ],
    [
      'id',
      set({ id: String(good.submission.id).replace('sub_01', 'sub_02') }),
      /\/submission\/id is not the bundle's/,
    ],
    ['leaf', set({ leaf_sha256: '0'.repeat(64) }), /leaf_sha256 is not the bundle's/],
    [
      'artifact',
      set({ artifact: { sha256: '0'.repeat(64) } }),
      /the artifact is not the one that was attested/,
    ],
    [
      'no artifact',
      changed(({ submission }) => delete submission.artifact),
      /artifact\/sha256 is not the bundle's/,
    ],
    ['time', set({ submitted_at: '2025-06-07T11:59:59.124Z' }), /submitted_at is not/],
    [
      'time with a nanosecond',
      set({ submitted_at: '2025-06-07T11:59:59.123000001Z' }),
      /submitted_at is not/,
    ],
    ['environment', set({ environment: 'test' }), /environment is not/],
    ['index', set({ log_index: 3 }), /log_index is not/],
    ['batch', set({ batch_id: second!.id }), /batch_id is not/],
    ['no batch', changed(({ submission }) => delete submission.batch_id), /batch_id is not/],
    ['no status', changed(({ submission }) => delete submission.status), /status is missing/],
    ['another status', set({ status: 'not fine' }), /status is not a known SubmissionStatus/],
    ['a bundle inside', set({ bundle: good.bundle }), /bundle belongs beside the submission/],
    [
      'metadata',
      set({ metadata: { schema: 'purl', purl: 'pkg:npm/other' } }),
      /the metadata is not what was attested/,
    ],
    [
      'schema',
      set({ metadata: { ...(good.submission.metadata as JsonObject), schema: 'p' } }),
      /is not what was attested/,
    ],
    ['no metadata', changed(({ submission }) => delete submission.metadata), /metadata is missing/],
    [
      'salt',
      set({ metadata_salt: salt.startsWith('0') ? `1${salt.slice(1)}` : `0${salt.slice(1)}` }),
      /is not what was/,
    ],
    ['salt in capitals', set({ metadata_salt: 'A'.repeat(64) }), /metadata_salt is not 64 lower-case/],
    ['no salt', changed(({ submission }) => delete submission.metadata_salt), /metadata_salt is not 64/],
    ['another attested metadata', set({ attested_metadata: CORRECTED }), /is not what was attested/],
    ['redacted with salt', set({ ...redacted }), /metadata_salt is present, but was redacted/],
    [
      'redacted with metadata',
      set({ metadata_state: 'redacted', redacted_at: '2025-06-08T00:00:00Z' }),
      /more than its schema/,
    ],
    [
      'redacted with attested metadata',
      set({ ...redacted, attested_metadata: INVALID }),
      /attested_metadata is present, but was redacted/,
    ],
    [
      'redacted with errors',
      set({ ...redacted, metadata_errors: [{ path: '/a', message: 'b' }] }),
      /metadata_errors are present, but were redacted/,
    ],
    ['redacted without time', set({ metadata_state: 'redacted' }), /contradict each other/],
    [
      'time of redaction without redaction',
      set({ redacted_at: '2025-06-08T00:00:00Z' }),
      /contradict each other/,
    ],
    [
      'an inexact integer',
      set({ log_index: 2 }).replace('"purl":', '"n":9007199254740993,"purl":'),
      /JSON numbers do not hold/,
    ],
    [
      'no bundle',
      changed((line) => Object.assign(line, { bundle: undefined })),
      /has no submission or no bundle/,
    ],
    ['no submission', JSON.stringify({ bundle: good.bundle }), /has no submission or no bundle/],
    ['null', '{"submission":null,"bundle":null}', /submission must be an object/],
    ['an array', JSON.stringify([good]), /is not one JSON object/],
    ['nothing', '', /the line is empty/],
    ['a cut', JSON.stringify(good).slice(0, -1), /is not JSON, or is cut off/],
    ['garbage after it', `${JSON.stringify(good)}x`, /is not JSON, or is cut off/],
    ['white space after it', `${JSON.stringify(good)} `, /is not one JSON object/],
    ['CR LF', `${JSON.stringify(good)}\r`, /ends with CR LF/],
    ['two byte order marks', `\ufeff\ufeff${JSON.stringify(good)}`, /is not one JSON object/],
    ['NUL', `${JSON.stringify(good)}\0`, /is not JSON/],
    ['a member twice', JSON.stringify(good).replace('"id":', '"id":"x","id":'), /has a member twice/],
    ['deep JSON', `{"submission":${'['.repeat(200_000)}`, /is not JSON/],
    [
      'deep valid JSON',
      `{"submission":${'['.repeat(9_000)}${']'.repeat(9_000)},"bundle":1}`,
      /must be an object/,
    ],
    ['deep metadata', set({ metadata: JSON.parse(`${'{"a":'.repeat(99)}1${'}'.repeat(99)}`) }), /too deep/],
    [
      'a member named __proto__ more',
      JSON.stringify(good).replace('"purl":', '"__proto__":{},"purl":'),
      /is not what was attested/,
    ],
    [
      'metadata in a prototype',
      JSON.stringify(good).replace(/"metadata":(\{[^}]*\})/, '"metadata":{"__proto__":$1}'),
      /is not what was attested/,
    ],
    ['a long line', `{"submission":"${'a'.repeat(1024 * 1024)}"}`, /longer than 1 MiB/],
  ];
  const verify = verifier();
  for (const [what, text, reason] of cases) {
    const found = await verify(utf8(text));
    t.match(found, { verdict: 'not_verified', reason }, what);
    t.equal(found.existedBy, undefined);
  }
  t.match(await verify(Uint8Array.of(0x7b, 0xff, 0x7d)), {
    verdict: 'not_verified',
    reason: /is not text in UTF-8/,
  });
});

t.test('trust decides as for a bundle, and a bundle of another version cannot be checked', async (t) => {
  const text = utf8(JSON.stringify(good));
  const other = rootsOf(await makeService(t.testdir()));
  for (const [what, options, reason] of [
    ['trust roots of another service', { trustRoots: other }, /the signing key is not in the trust roots/],
    ['the other environment', { environment: 'test' }, /is of the live environment, not test/],
    ['another project', { project: OTHER_PROJECT }, /attested it, not prj_/],
    ['a policy', { policy: { required: ['w1'] } }, /the required witness w1 has not vouched/],
  ] as [string, Partial<LineOptions>, RegExp][]) {
    t.match(await verifier(options)(text), { verdict: 'not_verified', reason }, what);
  }
  const version = changed(({ bundle }) => {
    bundle.media_type = 'application/vnd.attestation-service.bundle.v2+json';
  });
  t.match(await verifier()(utf8(version)), {
    verdict: 'could_not_check',
    reason: /another version of this verifier/,
  });
  t.match(await verifier({ trustRoots: [] })(text), {
    verdict: 'could_not_check',
    reason: /trust roots cannot be read/,
  });
});

t.test('cached results of other lines do not verify a changed one', async (t) => {
  const verify = verifier();
  const text = JSON.stringify(good);
  t.equal((await verify(utf8(text))).verdict, 'verified');
  const { checkpoints, witnesses } = good.bundle as { checkpoints: JsonObject[]; witnesses: JsonObject[] };
  const changes: [what: string, text: string][] = [
    [
      'signature of a checkpoint',
      text.replaceAll(/— live.log.example [^\\]*/g, (line) => `${line.slice(0, -4)}AAA=`),
    ],
    ['evidence', text.replace(String(witnesses[1]!.evidence), String(witnesses[0]!.evidence))],
    ['name of a witness', text.replace('"name":"tsa"', '"name":"log"')],
    ['detail', text.replace('"policy_oid":"', '"policy_oid":"1.')],
    ['log id', text.replace('"keyId":"', '"keyId":"AAAA')],
    ['kind', text.replace('"kind":"rfc3161"', '"kind":"transparency_log"')],
  ];
  t.equal(checkpoints.length, 1);
  for (const [what, change] of changes) {
    t.not(change, text, what);
    t.equal((await verify(utf8(change))).verdict, 'not_verified', what);
  }
  t.equal((await verify(utf8(text))).verdict, 'verified');
});

/** Members of a line that nothing but a manifest protects. */
const UNPROVEN = [
  '/submission/status',
  '/submission/witnessed_at',
  '/submission/metadata_state',
  '/bundle/batch/first_index',
  '/bundle/witnesses/0/landed_at',
  '/bundle/witnesses/1/landed_at',
  '/bundle/witnesses/0/detail/log_index',
];

t.test('members of a line that are not known are named and ignored', async (t) => {
  const line = structuredClone(good) as unknown as Record<string, JsonObject>;
  Object.assign(line.submission!, { more: { of: ['it'] } });
  Object.assign(line.bundle!, { more: 1 });
  const found = await verifier()(utf8(JSON.stringify({ ...line, more: 1 })));
  t.match(found, { verdict: 'verified', ignored: ['/more', '/submission/more', '/bundle/more'] });
});

t.test('a line with one flipped bit verifies only if the bit is in an unproven field', async (t) => {
  const verify = verifier();
  const bytes = utf8(JSON.stringify(good));
  const property = fc.asyncProperty(fc.nat(bytes.length - 1), fc.nat(7), async (at, bit) => {
    const flipped = bytes.with(at, bytes[at]! ^ (1 << bit));
    const { verdict } = await verify(flipped);
    if (verdict !== 'verified') return true;
    const found = JSON.parse(Buffer.from(flipped).toString());
    return differences(good, found).every(
      (place) => UNPROVEN.includes(place) || isUnknown(place) || isNeedless(place, found),
    );
  });
  const numRuns = isLong ? 1500 : 200;
  await fc.assert(property, { numRuns });
  t.pass(`${numRuns} flips`);
});

/** Whether a place is of a member that nothing is claimed from, as the good line has none there. */
function isUnknown(place: string): boolean {
  return valueAt(good, place) === undefined;
}

/** Whether a member is gone, or a witness's kind is another, without which the line proves as much. */
function isNeedless(place: string, found: unknown): boolean {
  if (/^\/bundle\/witnesses\/\d\/kind$/.test(place)) return true;
  const optional = [
    /^\/bundle\/witnesses\/\d\/(detail|evidence)/,
    /^\/bundle\/sigstore_bundle\/.*\/keyid$/,
    /^\/submission\/(warnings|metadata_errors)$/,
  ];
  const isNeeded = !optional.some((pattern) => pattern.test(place));
  return !isNeeded && valueAt(found, place) === undefined;
}

function valueAt(value: unknown, place: string): unknown {
  const names = place.split('/').slice(1);
  return names.reduce((at, name) => (at as Record<string, unknown> | undefined)?.[name], value);
}

/** JSON pointers to the innermost members that differ. */
function differences(a: unknown, b: unknown, path = ''): string[] {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null)
    return a === b ? [] : [path];
  const [left, right] = [new Map(Object.entries(a)), new Map(Object.entries(b))];
  const names = new Set([...left.keys(), ...right.keys()]);
  return [...names].flatMap((name) => differences(left.get(name), right.get(name), `${path}/${name}`));
}
