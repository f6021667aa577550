import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { InfoService } from '../../../gen/attestation/v1/service_pb.js';
import { SCOPES } from '../../../src/protocol/scopes.js';
import { createLogger } from '../../../src/server/core/logger.js';
import { connectPool } from '../../../src/server/database/connect.js';
import { createDegradationCheck } from '../../../src/server/ops/degradation.js';
import { createHealthCheck } from '../../../src/server/ops/health-check.js';
import { deleteWorker, recordWorker } from '../../../src/server/pipeline/workers.js';
import { openRegister } from '../../../src/server/witnessing/register/open-register.js';
import { startApp } from '../../support/app.js';
import { newKey, type TestKey } from '../../support/calling/test-keys.js';
import { withinOneHour } from '../../support/fixed-clock.js';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { testDatabase } from '../../support/servers/shared-servers.js';
import { until } from '../../support/until.js';
import { submit } from '../rpc/submitting.js';

const app = await startApp(t);
const surfaces = app.surfaces();
const { getHealth, getMe, getTrustRoots } = InfoService.method;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

async function me({ key }: TestKey): Promise<JsonObject> {
  return (await app.rest('/v1/service/me', { apiKey: key })).json;
}

t.test('the health of a running service is OK', async (t) => {
  const { key } = await newKey(app, { scopes: [] });
  for (const { name, call } of surfaces) {
    t.match(await call(getHealth, {}, key), { code: 'ok', response: { status: 'ok' } }, name);
  }
  t.same((await app.rest('/v1/service/health', { apiKey: key })).json, { status: 'ok' });
});

t.test('health is degraded if no worker has reported lately, or a batch is late', async (t) => {
  const { key } = await newKey(app, { scopes: [] });
  for (const { name, call } of surfaces) {
    const healthIs = (status: string) => async () => {
      // A worker may say meanwhile that it runs.
      if (status === 'degraded') await app.pool`UPDATE worker SET seen_at = now() - interval '1 minute'`;
      const { code, response } = await call(getHealth, {}, key);
      t.equal(code, 'ok', name);
      return response.status === status && response;
    };
    const { reason } = await until(`${name}: degraded`, healthIs('degraded'));
    t.match(reason, /no worker runs/, name);
    await until(`${name}: ok again`, healthIs('ok'));
  }
  const { json, status } = await app.rest('/v1/service/health', { apiKey: key });
  t.same({ status, json }, { status: 200, json: { status: 'ok' } });
});

t.test('proofs are late without a worker, or when a batch exceeds its deadline by far', async (t) => {
  const pool = connectPool({
    url: await testDatabase(t),
    name: 'test',
    max: 1,
    statementTimeoutMs: 60_000,
  });
  t.teardown(() => pool.end({ timeout: 1 }));
  const look = () =>
    createDegradationCheck(
      pool,
      () => 0,
      () => undefined,
    )();
  t.match(await look(), /no worker runs/);
  await recordWorker(pool, 'one');
  t.equal(await look(), undefined);
  await pool`INSERT INTO log (environment, epoch, origin, public_key) VALUES (1, 1, 'log', '')`;
  const sealed = (size: number, deadline: string, status: number) => pool`
    INSERT INTO batch (log_id, tree_size, id, first_index, root_hash, note, policy_version, sealed_at, deadline_at, status)
    VALUES (1, ${size}, ${`btc_${size}`}, ${size - 1}, '', '', 1, now(), now() + ${deadline}::interval, ${status})`;
  await sealed(1, '-1 hour', 4);
  await sealed(2, '-30 seconds', 1);
  await sealed(3, '1 hour', 1);
  t.equal(await look(), undefined);
  await pool`UPDATE batch SET deadline_at = now() - interval '2 minutes' WHERE tree_size = 2`;
  t.match(await look(), /a batch/);
  await pool`UPDATE log SET frozen_at = now()`;
  t.equal(await look(), undefined, 'a frozen log is not degraded, but not operational');
  await deleteWorker(pool, 'one');
  t.match(await look(), /no worker runs/);
});

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

t.test('trust roots name every key, log, authority and policy, the same on every surface', async (t) => {
  const { key } = await newKey(app, { scopes: [] });
  const { json, headers } = await app.rest('/v1/service/trust_roots', { apiKey: key });
  t.same(Object.keys(json), [
    'timestamp_authorities',
    'transparency_logs',
    'log_witnesses',
    'dsse_signing_keys',
    'timestamp_calendars',
    'evm_contracts',
    'policies',
    'updated_at',
    'opentimestamps_witnesses',
  ]);
  t.match(json, {
    timestamp_authorities: [
      { name: 'self-tsa', url: '', operator: 'self', cert_chain_pem: [/BEGIN/, /BEGIN/], valid_from: TIME },
    ],
    transparency_logs: ['live', 'test'].map((name) => ({
      environment: name,
      origin: `${name}.log.example.com`,
      verifier_key: new RegExp(`^${name}\\.log\\.example\\.com\\+[0-9a-f]{8}\\+[A-Za-z0-9+/=]+$`),
      public_key_pem: /BEGIN PUBLIC KEY/,
      url: `${app.verifyUrl}/log/${name}`,
      valid_from: TIME,
      valid_to: undefined,
    })),
    log_witnesses: [],
    dsse_signing_keys: ['live', 'test'].map((environment) => ({
      environment,
      fingerprint_sha256: /^[0-9a-f]{64}$/,
      algorithm: 'ecdsa-p256-sha256',
      public_key_pem: /BEGIN PUBLIC KEY/,
      valid_from: TIME,
    })),
    timestamp_calendars: [],
    evm_contracts: [],
    policies: ['live', 'test'].map((environment) => ({
      environment,
      version: 1,
      required: ['log', 'self-tsa'],
      deadline: '3600s',
      valid_from: TIME,
      valid_to: undefined,
    })),
    updated_at: TIME,
  });
  const again = { 'if-none-match': String(headers.etag) };
  t.equal((await app.rest('/v1/service/trust_roots', { apiKey: key, headers: again })).status, 304);
  const [rest, ...others] = await Promise.all(surfaces.map(({ call }) => call(getTrustRoots, {}, key)));
  for (const { response } of others) t.same(response, rest!.response);
});

t.test('health queries the database once for concurrent calls, and the register each second', async (t) => {
  const other = await startApp(t);
  const register = await openRegister(other.register);
  let now = 0;
  const log = createLogger({ level: 'silent' });
  const check = createHealthCheck({ pool: other.pool, register, log, monotonicMs: () => now });
  t.equal(check(), check(), 'one look for both');
  t.same(await check(), []);
  await writeFile(join(other.register, 'live.log.example.com'), `1000 ${'0'.repeat(64)}\n`);
  now += 999;
  t.same(await check(), []);
  now += 1;
  t.match(await check(), [
    {
      environment: Environment.LIVE,
      reason: /^the log live\.log\.example\.com is frozen: the register has a checkpoint of size 1000/,
    },
  ]);
  t.match(await check(), [{ reason: /is frozen/ }]);
  const unreachable = connectPool({
    url: 'postgres://127.0.0.1:9/x',
    name: 'test',
    max: 1,
    statementTimeoutMs: 1_000,
  });
  t.teardown(() => unreachable.end({ timeout: 0 }));
  await t.rejects(createHealthCheck({ pool: unreachable, register, log, monotonicMs: () => now })());
});

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder);
});
