import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { Bucket } from '../../../gen/attestation/options/v1/options_pb.js';
import { AttestationService } from '../../../gen/attestation/v1/attestations_pb.js';
import { BatchService } from '../../../gen/attestation/v1/batches_pb.js';
import { InfoService } from '../../../gen/attestation/v1/service_pb.js';
import { startApp } from '../../support/app.js';
import type { Outcome } from '../../support/calling/surfaces.js';
import { announceChange, newKey, type TestKey } from '../../support/calling/test-keys.js';
import { withinOneHour } from '../../support/fixed-clock.js';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { until } from '../../support/until.js';
import { creation, NOTHING } from './samples.js';
import { submitWitnessed } from './submitting.js';

const app = await startApp(t, { apis: 3 });
const surfaces = app.surfaces();
/** Every surface of every process. */
const everywhere = [...surfaces, ...app.baseUrls.slice(1).flatMap((baseUrl) => app.surfaces(baseUrl))];
const { createAttestation, listAttestations } = AttestationService.method;
const { getBatch } = BatchService.method;
const { getMe } = InfoService.method;
const ARTIFACT = 'ab'.repeat(32);
const DAY_SECONDS = 86_400;
const SUBMISSIONS = Bucket.SUBMISSIONS;
const READS = Bucket.READS;
const LIMIT_HEADERS = [
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'ratelimit',
  'ratelimit-policy',
];

function create(key: TestKey, at = 0, headers: Record<string, string> = {}): Promise<Outcome> {
  return everywhere[at % everywhere.length]!.call(createAttestation, creation(ARTIFACT), key.key, headers);
}

/** What the tables say was granted to a key, second by second. */
async function grantedBySecond({ id }: TestKey, bucket: number): Promise<number[]> {
  const rows = await app.pool<{ n: number }[]>`
    SELECT n_second::int AS n FROM rate_counter WHERE api_key_id = ${id} AND bucket = ${bucket}`;
  return rows.map(({ n }) => n);
}

function countOk(outcomes: readonly Outcome[]): number {
  return outcomes.filter(({ code }) => code === 'ok').length;
}

t.test('submissions in a second are exact over all processes and surfaces', async (t) => {
  const key = await newKey(app, { limits: { perSecond: 5 } });
  const outcomes: Outcome[] = [];
  for (let round = 0; round < 4; round++) {
    outcomes.push(...(await Promise.all(Array.from({ length: 50 }, (_, i) => create(key, i)))));
  }
  const seconds = await grantedBySecond(key, SUBMISSIONS);
  t.ok(
    seconds.every((n) => n <= 5),
    'no second has more than its limit',
  );
  t.equal(
    seconds.reduce((sum, n) => sum + n, 0),
    countOk(outcomes),
    'what was granted was stored, and nothing else',
  );
  const stored = await app.pool`SELECT id FROM named_submission WHERE project_id = ${key.projectId}`;
  t.equal(stored.length, countOk(outcomes));
  t.same(new Set(outcomes.map(({ code }) => code)), new Set(['ok', 'rate_limit.exceeded']));
});

t.test('submissions in a day are exact: not one more, not one less', async (t) => {
  const { key, outcomes } = await withinOneHour(async () => {
    const key = await newKey(app, { limits: { perDay: 7 } });
    return { key, outcomes: await Promise.all(Array.from({ length: 60 }, (_, i) => create(key, i))) };
  });
  t.equal(countOk(outcomes), 7);
  const stored = await app.pool`SELECT id FROM named_submission WHERE project_id = ${key.projectId}`;
  t.equal(stored.length, 7);
});

t.test('reads are never more than the limit over all processes and surfaces', async (t) => {
  const key = await newKey(app, { limits: { readsPerSecond: 7 } });
  const outcomes: Outcome[] = [];
  for (let round = 0; round < 3; round++) {
    const calls = Array.from({ length: 64 }, (_, i) =>
      everywhere[i % everywhere.length]!.call(getMe, {}, key.key),
    );
    outcomes.push(...(await Promise.all(calls)));
  }
  const seconds = await grantedBySecond(key, READS);
  t.ok(seconds.every((n) => n <= 7));
  t.ok(seconds.reduce((sum, n) => sum + n, 0) >= countOk(outcomes));
  const refused = outcomes.filter(({ code }) => code !== 'ok');
  t.same(new Set(refused.map(({ code }) => code)), new Set(['rate_limit.exceeded']));
  const [{ details } = { details: {} }] = refused;
  t.match(details, { bucket: 'reads', window: 1, limit: 7 });
});

t.test('a response has the remainder of the tightest window, and of every window', async (t) => {
  const { created, refused, midnight } = await withinOneHour(async () => {
    const key = await newKey(app, { limits: { perSecond: 100, perHour: 50, perDay: 4 } });
    const created: Outcome[] = [];
    for (const at of surfaces.keys()) created.push(await create(key, at));
    const refused: Outcome[] = [];
    for (const at of everywhere.keys()) refused.push(await create(key, at));
    return { created, refused, midnight: (Math.floor(Date.now() / 1000 / DAY_SECONDS) + 1) * DAY_SECONDS };
  });
  const q = '"submissions-1s";q=100;w=1, "submissions-3600s";q=50;w=3600, "submissions-86400s";q=4;w=86400';
  for (const [used, { code, headers }] of created.entries()) {
    t.equal(code, 'ok', surfaces[used]!.name);
    t.match(headers, {
      'x-ratelimit-limit': '4',
      'x-ratelimit-remaining': String(3 - used),
      'x-ratelimit-reset': String(midnight),
      'ratelimit-policy': q,
    });
    const r = `"submissions-3600s";r=${49 - used};t=\\d+, "submissions-86400s";r=${3 - used};t=\\d+$`;
    t.match(headers.ratelimit, new RegExp(r));
  }
  for (const [at, outcome] of refused.entries()) {
    const isRest = everywhere[at]!.name === 'REST';
    t.match(outcome, { code: 'rate_limit.exceeded', status: isRest ? 429 : 0, grpcCode: isRest ? 0 : 8 });
    t.same(outcome.details, {
      bucket: 'submissions',
      window: DAY_SECONDS,
      limit: 4,
      reset: new Date(midnight * 1000).toISOString(),
    });
    t.match(outcome.message, /4 submissions in 86400 s/);
    t.match(outcome.headers, { 'x-ratelimit-remaining': '0', 'retry-after': /^[1-9]\d{0,4}$/ });
  }
});

t.test('rejected creations and replays do not count', async (t) => {
  const refusals = [
    creation('x'),
    creation(ARTIFACT, { schema: 'purl' }),
    creation(ARTIFACT, { schema: 'none' }),
  ];
  const { codes, counted } = await withinOneHour(async () => {
    const key = await newKey(app, { limits: { perDay: 3 } });
    const replayed = { 'idempotency-key': 'again-and-again' };
    const codes: string[] = [];
    for (const [at, { call }] of everywhere.entries()) {
      codes.push((await create(key, at, replayed)).code);
      for (const message of refusals) await call(createAttestation, message, key.key);
      codes.push((await call(createAttestation, creation('cd'.repeat(32)), key.key, replayed)).code);
    }
    const counted = await grantedBySecond(key, SUBMISSIONS);
    for (let i = 0; i < 3; i++) codes.push((await create(key)).code);
    return { codes, counted };
  });
  const each = everywhere.flatMap(() => ['ok', 'idempotency.key_reused']);
  t.same(codes, [...each, 'ok', 'ok', 'rate_limit.exceeded']);
  t.same(counted, [1]);
});

t.test('every response to a caller with a key carries the rate headers', async (t) => {
  for (const [at, { name, call }] of everywhere.entries()) {
    const key = await newKey(app, { limits: { perDay: 1_000 } });
    const scopeless = await newKey(app, { scopes: [] });
    const headers = { 'idempotency-key': `rate-headers-${at}` };
    const outcomes: [what: string, outcome: Outcome][] = [
      ['refused, the first of its key', await call(createAttestation, creation('x'), key.key)],
      ['created', await call(createAttestation, creation(ARTIFACT), key.key, headers)],
      ['replayed by another process', await create(key, at + surfaces.length, headers)],
      ['found nothing', await call(getBatch, { id: NOTHING.batchId }, key.key)],
      ['wrong', await call(listAttestations, { cursor: 'cur_x' }, key.key)],
      ['read', await call(getMe, {}, key.key)],
      ['may not read', await call(getBatch, { id: NOTHING.batchId }, scopeless.key)],
      ['may not create', await call(createAttestation, creation(ARTIFACT), scopeless.key)],
    ];
    for (const [what, outcome] of outcomes) {
      const missing = LIMIT_HEADERS.filter((header) => outcome.headers[header] === undefined);
      t.same(missing, [], `${what}, by ${name}`);
    }
  }
});

t.test('a 304 carries the rate headers, and counts', async (t) => {
  const key = await newKey(app, { limits: { readsPerSecond: 1_000 } });
  const { id } = await submitWitnessed(app, key);
  const path = `/v1/attestations/${id}/bundle`;
  const { etag } = (await app.rest(path, { apiKey: key.key })).headers;
  const before = (await grantedBySecond(key, READS)).reduce((sum, n) => sum + n, 0);
  const headers = { 'if-none-match': String(etag) };
  const answers = await Promise.all(
    Array.from({ length: 100 }, () => app.rest(path, { apiKey: key.key, headers })),
  );
  for (const answer of answers) {
    t.equal(answer.status, 304);
    t.same(
      LIMIT_HEADERS.filter((header) => answer.headers[header] === undefined),
      [],
    );
  }
  const after = (await grantedBySecond(key, READS)).reduce((sum, n) => sum + n, 0);
  t.ok(after - before > 50, 'each of them was granted, save what was leased before');
});

t.test('a raised limit applies as soon as the process is notified', async (t) => {
  const codes = await withinOneHour(async () => {
    const key = await newKey(app, { limits: { perDay: 1 } });
    const before = [await create(key), await create(key)];
    await app.pool`UPDATE api_key SET submissions_per_day = 2 WHERE id = ${key.id}`;
    await announceChange(app, key.id);
    await until('the process has heard of it', async () => (await create(key)).code === 'ok');
    return [...before, await create(key)].map(({ code }) => code);
  });
  t.same(codes, ['ok', 'rate_limit.exceeded', 'rate_limit.exceeded']);
});

t.test('usage is counted separately for submissions and reads, and for each key', async (t) => {
  const [one, sibling] = [await newKey(app), await newKey(app)];
  await create(one, 0);
  await create(one, 1);
  const usageOf = async ({ key }: TestKey) =>
    (await app.rest('/v1/service/me', { apiKey: key })).json.usage as JsonObject;
  t.match(await usageOf(one), { submissions_last_24h: 2 });
  t.match(await usageOf(sibling), { submissions_last_24h: 0, by_day: [{ submissions: 0 }] });
});

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder);
});
