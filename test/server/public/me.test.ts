/** What a key learns about itself: its rights, limits and usage. */
import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { InfoService } from '../../../gen/attestation/v1/service_pb.js';
import { SCOPES } from '../../../src/protocol/scopes.js';
import { startApp } from '../../support/app.js';
import { newKey, type TestKey } from '../../support/calling/test-keys.js';
import { withinOneHour } from '../../support/fixed-clock.js';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { until } from '../../support/until.js';
import { submit } from '../rpc/submitting.js';
import { TIME } from './response-times.js';

const app = await startApp(t);
const surfaces = app.surfaces();
const { getMe } = InfoService.method;

async function me({ key }: TestKey): Promise<JsonObject> {
  return (await app.rest('/v1/service/me', { apiKey: key })).json;
}

t.test('a key learns everything about itself but its secret', async (t) => {
  const limits = { perSecond: 60, perHour: 10_000, perDay: 100_000, readsPerSecond: 600 };
  const owner = await newKey(app, { limits, environment: Environment.TEST });
  const { project, api_key, scopes, rate_limits, usage, ...more } = await me(owner);
  t.same(more, {});
  t.same(project, { id: owner.projectId, name: 'a test' });
  const { created_at, last_used_at, ...key } = api_key as JsonObject;
  t.same(key, {
    id: owner.id,
    prefix: 'svc_test_',
    last4: owner.key.slice(-4),
    environment: 'test',
  });
  t.match(created_at, TIME);
  t.ok(last_used_at === undefined || TIME.test(String(last_used_at)));
  t.same(scopes, [...SCOPES, 'service:read'].sort());
  const windows = (rate_limits as JsonObject[]).map(({ bucket, window_seconds, limit }) => [
    bucket,
    window_seconds,
    limit,
  ]);
  t.same(windows, [
    ['submissions', 1, 60],
    ['submissions', 3_600, 10_000],
    ['submissions', 86_400, 100_000],
    ['reads', 1, 600],
  ]);
  for (const { window_seconds, limit, remaining, reset_at } of rate_limits as JsonObject[]) {
    t.ok(Number(remaining) <= Number(limit) && Number(remaining) >= Number(limit) - 3);
    t.equal((Date.parse(String(reset_at)) / 1000) % Number(window_seconds), 0, 'windows are aligned');
  }
  t.match(usage, { submissions_last_24h: 0, by_day: [{ submissions: 0 }] });
  await until('it is noted that the key was used', async () => {
    const { api_key: again } = await me(owner);
    return 'last_used_at' in (again as JsonObject);
  });
});

t.test('a key that expires learns when', async (t) => {
  const expiresAt = new Date(Date.now() + 86_400_000);
  const { api_key } = await me(await newKey(app, { expiresAt }));
  t.match(api_key, { expires_at: expiresAt.toISOString() });
});

t.test('the remaining reads equal the headers of the same response', async (t) => {
  const { key } = await newKey(app, { limits: { readsPerSecond: 600 } });
  for (let i = 0; i < 20; i++) {
    const { headers, json } = await app.rest('/v1/service/me', { apiKey: key });
    const reads = (json.rate_limits as JsonObject[]).find(({ bucket }) => bucket === 'reads');
    t.equal(String(reads?.remaining), headers['x-ratelimit-remaining']);
    t.equal(Date.parse(String(reads?.reset_at)) / 1000, Number(headers['x-ratelimit-reset']));
  }
});

t.test('usage counts submissions and reads, also by day', async (t) => {
  const owner = await newKey(app);
  for (let i = 0; i < 5; i++) await submit(app, owner);
  for (let i = 0; i < 10; i++) await app.rest('/v1/attestations', { apiKey: owner.key });
  const refused = await app.rest('/v1/attestations', { apiKey: owner.key, body: {} });
  t.equal(refused.status, 400);
  const { usage } = (await me(owner)) as { usage: JsonObject };
  t.equal(usage.submissions_last_24h, 5, 'what was refused is not in it');
  const reads = Number(usage.reads_last_24h);
  t.ok(reads >= 11 && reads <= 33, `11 reads, in blocks of few: ${reads}`);
  const days = usage.by_day as JsonObject[];
  t.match(days[0], { date: /^\d{4}-\d\d-\d\d$/ });
  const sum = (member: string) => days.reduce((total, day) => total + Number(day[member]), 0);
  t.equal(sum('submissions'), 5);
  t.equal(sum('reads'), reads);
});

t.test('usage is of the last 24 hours and 30 days, each hour and day counted once', async (t) => {
  const { hour, day, usage } = await withinOneHour(countUsage);
  t.equal(usage.submissions_last_24h, 7);
  const date = (second: number) => new Date(second * 1000).toISOString().slice(0, 10);
  const days = (usage.by_day as JsonObject[]).filter(({ submissions }) => Number(submissions) > 0);
  t.match(days, [
    { date: date(hour), submissions: 7 },
    { date: date(day(2)), submissions: 9, reads: 2 },
    { date: date(day(29)), submissions: 1 },
  ]);
});

/** What a key is told that has counters of this hour and of days before. */
async function countUsage() {
  const owner = await newKey(app);
  const hour = Math.floor(Date.now() / 3_600_000) * 3_600;
  const day = (back: number) => Math.floor(hour / 86_400 - back) * 86_400;
  const counted: [bucket: number, second: number, hourTotal: number, dayTotal: number][] = [
    [2, hour, 3, 3],
    [2, hour + 1, 7, 7],
    [2, day(2) + 10, 4, 4],
    [2, day(2) + 3_600, 5, 9],
    [1, day(2) + 10, 2, 2],
    [2, day(29), 1, 1],
    [2, day(32), 99, 99],
  ];
  for (const [bucket, second, hourTotal, dayTotal] of counted) {
    await app.pool`INSERT INTO rate_counter VALUES (${owner.id}, ${bucket}, ${second}, 1, ${hourTotal}, ${dayTotal})`;
  }
  const { usage } = (await me(owner)) as { usage: JsonObject };
  return { hour, day, usage };
}

t.test('the last 24 hours are this one and the 23 before it', async (t) => {
  const usage = await withinOneHour(async () => {
    const owner = await newKey(app);
    const hour = Math.floor(Date.now() / 3_600_000) * 3_600;
    for (const [hoursAgo, n] of [
      [22, 1],
      [23, 20],
      [24, 300],
      [25, 4_000],
    ] as const) {
      await app.pool`INSERT INTO usage_counter VALUES (${owner.id}, 3600, ${hour - hoursAgo * 3_600}, 2, ${n})`;
    }
    return (await me(owner)).usage as JsonObject;
  });
  t.equal(usage.submissions_last_24h, 21);
});

t.test('every surface returns the same for a key', async (t) => {
  const { key } = await newKey(app, { limits: { readsPerSecond: 1_000 } });
  const stable = ({ project, apiKey, scopes }: JsonObject) => {
    const { lastUsedAt: _, ...rest } = apiKey as JsonObject;
    return { project, scopes, rest };
  };
  const outcomes = await Promise.all(surfaces.map(({ call }) => call(getMe, {}, key)));
  for (const { response } of outcomes) t.same(stable(response), stable(outcomes[0]!.response));
});

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder);
});
