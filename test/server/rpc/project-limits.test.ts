/** The limits of a project: a ceiling over its API keys, exact over all processes. */
import type { JsonObject } from '@bufbuild/protobuf';
import t, { type Test } from 'tap';
import { AuditService } from '../../../gen/attestation/admin/v1/audit_pb.js';
import { ProjectService } from '../../../gen/attestation/admin/v1/projects_pb.js';
import { Bucket } from '../../../gen/attestation/options/v1/options_pb.js';
import { AttestationService } from '../../../gen/attestation/v1/attestations_pb.js';
import { startApp } from '../../support/app.js';
import { adminOf } from '../../support/calling/admin.js';
import { signedIn } from '../../support/calling/sessions.js';
import type { Outcome } from '../../support/calling/surfaces.js';
import { announceChange, newKey, type TestKey } from '../../support/calling/test-keys.js';
import { until } from '../../support/until.js';
import { creation } from './samples.js';

const app = await startApp(t, { apis: 2 });
const admin = adminOf(app);
/** Every surface of every process. */
const everywhere = app.baseUrls.flatMap((baseUrl) => app.surfaces(baseUrl));
const { createAttestation, listAttestations } = AttestationService.method;
const { updateProject, getProject } = ProjectService.method;
const DAY_SECONDS = 86_400;
const DAY_MS = DAY_SECONDS * 1000;
const TWENTY = Array.from({ length: 20 }, (_, i) => i);

await until('the day does not end soon', () => Date.now() % DAY_MS < DAY_MS - 100_000);

type Limits = { submissionsPerSecond?: bigint; submissionsPerDay?: bigint; readsPerSecond?: bigint };

/** Two keys of a project that has these limits. */
async function twoKeys(
  limits: Limits,
  ofKey: Parameters<typeof newKey>[1] = {},
): Promise<[TestKey, TestKey]> {
  const one = await newKey(app, ofKey);
  const { projectId } = one;
  await admin.ask(updateProject, { id: projectId, limits });
  return [one, await newKey(app, { ...ofKey, projectId })];
}

async function setLimits(keys: readonly TestKey[], limits: Limits): Promise<void> {
  await admin.ask(updateProject, { id: keys[0]?.projectId ?? '', limits });
  for (const { id } of keys) await announceChange(app, id);
}

function create({ key }: TestKey, at: number, headers: Record<string, string> = {}): Promise<Outcome> {
  return everywhere[at % everywhere.length]!.call(createAttestation, creation('ab'.repeat(32)), key, headers);
}

/** Creations by both keys in turn, on every surface of every process at once. */
function createMany(keys: readonly TestKey[]): Promise<Outcome[]> {
  return Promise.all(TWENTY.map((i) => create(keys[i % keys.length]!, i)));
}

const countOk = (outcomes: readonly Outcome[]) => outcomes.filter(({ code }) => code === 'ok').length;

async function counted(owner: string, bucket: Bucket): Promise<number[]> {
  const rows = await app.pool<{ n: number }[]>`
    SELECT n_second::int AS n FROM rate_counter WHERE api_key_id = ${owner} AND bucket = ${bucket}`;
  return rows.map(({ n }) => n);
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, n) => total + n, 0);

function assertRefused(t: Test, outcomes: readonly Outcome[], details: JsonObject): void {
  for (const { code, message, details: given } of outcomes.filter((outcome) => outcome.code !== 'ok')) {
    t.equal(code, 'rate_limit.exceeded');
    t.match(
      message,
      /^the project's limit, over all its API keys, of \d+ (submissions|reads) in \d+ s is reached/,
    );
    t.match(given, { ...details, of_project: true });
  }
}

t.test('submissions of all keys together are bounded, exactly over all processes', async (t) => {
  const keys = await twoKeys({ submissionsPerDay: 7n });
  const outcomes = await createMany(keys);
  t.equal(countOk(outcomes), 7);
  assertRefused(t, outcomes, { bucket: 'submissions', window: DAY_SECONDS, limit: 7 });
  const own = await Promise.all(keys.map(({ id }) => counted(id, Bucket.SUBMISSIONS)));
  t.equal(sum(own.flat()), 7, 'what the ceiling refuses counts for no key');
  t.equal(sum(await counted(keys[0].projectId, Bucket.SUBMISSIONS)), 7);
  const refused = await create(keys[0], 0);
  t.match(
    refused.headers,
    { 'x-ratelimit-limit': '1000000000', 'retry-after': /^\d+$/ },
    'the headers are of the key',
  );
  await setLimits(keys, { submissionsPerDay: 9n });
  t.equal(countOk(await createMany(keys)), 2, 'a higher ceiling has room again');
});

t.test('a key is bounded by its own limits first', async (t) => {
  const keys = await twoKeys({ submissionsPerDay: 7n }, { limits: { perDay: 3 } });
  const outcomes = await createMany(keys);
  t.equal(countOk(outcomes), 6, 'three of each');
  const [refused] = outcomes.filter(({ code }) => code !== 'ok');
  t.match(refused?.details, { bucket: 'submissions', window: DAY_SECONDS, limit: 3 });
  t.equal(refused?.details.of_project, undefined);
});

t.test('the items of a batch are bounded one by one, and a known idempotency key is replayed', async (t) => {
  const keys = await twoKeys({ submissionsPerDay: 3n });
  const first = await create(keys[0], 0, { 'idempotency-key': 'known' });
  const items = TWENTY.slice(0, 4).map(() => creation('cd'.repeat(32)));
  const { status, json } = await app.rest('/v1/attestations:batch', { apiKey: keys[1].key, body: { items } });
  t.equal(status, 200);
  const results = json.results as { error?: { code: string; details: JsonObject } }[];
  t.equal(results.filter(({ error }) => error === undefined).length, 2);
  t.match(results.at(-1)?.error, { code: 'rate_limit.exceeded', details: { of_project: true, limit: 3 } });
  const again = await create(keys[0], 0, { 'idempotency-key': 'known' });
  t.match(again, { code: 'ok', response: { id: first.response.id } });
});

t.test('a ceiling is five times the highest limit of a key, unless the operator sets it', async (t) => {
  const low = await newKey(app, { limits: { perDay: 1 } });
  const { projectId } = low;
  const keys = [
    low,
    ...(await Promise.all(TWENTY.map(() => newKey(app, { projectId, limits: { perDay: 2 } })))),
  ];
  const outcomes = await Promise.all(keys.map((key, i) => create(key, i)));
  t.equal(countOk(outcomes), 10);
  assertRefused(t, outcomes, { limit: 10 });
});

t.test('reads of all keys together are bounded in every second, and sessions are not', async (t) => {
  const keys = await twoKeys({ readsPerSecond: 8n });
  const read = (i: number) => everywhere[i % everywhere.length]!.call(listAttestations, {}, keys[i % 2]!.key);
  const outcomes: Outcome[] = [];
  for (let round = 0; round < 4; round++) outcomes.push(...(await Promise.all(TWENTY.map(read))));
  const seconds = await counted(keys[0].projectId, Bucket.READS);
  t.ok(
    seconds.every((n) => n <= 8),
    `never more than 8: ${seconds.join()}`,
  );
  t.ok(countOk(outcomes) <= sum(seconds), 'every read was counted');
  t.ok(countOk(outcomes) < outcomes.length, 'some were refused');
  assertRefused(t, outcomes, { bucket: 'reads', window: 1, limit: 8 });
  const own = await Promise.all(keys.map(({ id }) => counted(id, Bucket.READS)));
  t.equal(sum(own.flat()), sum(seconds), 'what the ceiling refuses counts for no key');
  await setLimits(keys, { readsPerSecond: 0n });
  t.equal((await read(0)).code, 'rate_limit.exceeded');
  t.equal((await (await signedIn(app, keys[0])).call(listAttestations, {})).code, 'ok');
});

t.test('the operator sets limits, and their defaults again', async (t) => {
  const { projectId: id } = await newKey(app);
  t.equal((await admin.ask(getProject, { id })).limits, undefined);
  await admin.ask(updateProject, { id, limits: { submissionsPerDay: 5n, readsPerSecond: 6n } });
  await admin.ask(updateProject, { id, limits: { readsPerSecond: 7n } });
  t.match(await admin.ask(getProject, { id }), { limits: { submissionsPerDay: '5', readsPerSecond: '7' } });
  await admin.ask(updateProject, { id, defaultLimits: true, limits: { readsPerSecond: 7n } });
  t.same((await admin.ask(getProject, { id })).limits, { readsPerSecond: '7' });
  const { data } = await admin.ask(AuditService.method.listAuditEntries, { projectId: id });
  t.match((data as JsonObject[])[0], {
    action: 'AUDIT_ACTION_PROJECT_CHANGED',
    detail: { submissions_per_day: { from: 5, to: null } },
  });
  t.equal((await admin.call(updateProject, { id, limits: { readsPerSecond: -1n } })).code, 'request.invalid');
});
