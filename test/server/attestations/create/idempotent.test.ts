/** Effects that happen once for an idempotency key, whatever is sent, lost or repeated. Real transactions. */
import { create } from '@bufbuild/protobuf';
import t, { type Test } from 'tap';
import { AttestationService } from '../../../../gen/attestation/v1/attestations_pb.js';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { HealthSchema } from '../../../../gen/attestation/v1/service_pb.js';
import type { Call } from '../../../../src/server/core/call.js';
import { ApiError } from '../../../../src/server/core/errors.js';
import { connectPool, type Pool } from '../../../../src/server/database/connect.js';
import { methodRules } from '../../../../src/server/http/services.js';
import { type Idempotency, runIdempotently } from '../../../../src/server/idempotency/idempotency.js';
import { pruneIdempotencyKeys } from '../../../../src/server/idempotency/idempotency-keys.js';
import { deriveKeyRing, parseKeyRing } from '../../../../src/server/keys/key-ring.js';
import { testDatabase } from '../../../support/servers/shared-servers.js';
import { until } from '../../../support/until.js';

const OLD = `old:${Buffer.alloc(32, 1).toString('base64')}`;
const NEW = `new:${Buffer.alloc(32, 2).toString('base64')}`;

type Ledger = { deps: (secret?: string) => Idempotency; pool: Pool; effects: () => Promise<number> };

/** An effect is a row in `project`. */
async function openLedger(t: Test): Promise<Ledger> {
  const pool = connectPool({
    url: await testDatabase(t),
    name: 'test',
    max: 20,
    statementTimeoutMs: 30_000,
  });
  t.teardown(() => pool.end({ timeout: 1 }));
  return {
    pool,
    deps: (secret = NEW) => ({
      pool,
      keys: deriveKeyRing(parseKeyRing(secret), 'idempotency'),
      retentionMs: 86_400_000,
      clock: () => performance.now(),
    }),
    effects: async () => (await pool`SELECT FROM project`).length,
  };
}

function newCall(idempotencyKey: string | undefined, apiKeyId = 'key_a'): Call {
  const method = AttestationService.method.getAttestation;
  return {
    method,
    rules: methodRules(method),
    requestId: 'req_1',
    startedMs: 0,
    header: () => undefined,
    signal: () => new AbortController().signal,
    principal: { id: apiKeyId } as Call['principal'],
    session: undefined,
    peer: undefined,
    idempotencyKey,
    rateStates: [],
    tally: { room: 'any', taken: 0, due: undefined },
    bodyBytes: 0,
    nextItem: undefined,
    hasChanged: undefined,
    pendingStatus: undefined,
    responseHeaders: new Map(),
  };
}

let made = 0;

/** Runs the effect for a request about `id`; says which resource came of it and whether it was a replay. */
async function run(deps: Idempotency, call: Call, id = 'sub_1', fail?: Error): Promise<string> {
  const response = await runIdempotently(deps, call, create(call.method.input, { id } as never), {
    effect: async (tx) => {
      const resourceId = `prj_${++made}`;
      await tx`INSERT INTO project (id, name) VALUES (${resourceId}, 'x')`;
      if (fail !== undefined) throw fail;
      return { resourceId, response: create(HealthSchema, { status: resourceId }) };
    },
    replay: async (resourceId) => create(HealthSchema, { status: `${resourceId} again` }),
  });
  return response.status;
}

const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: unknown) => (error instanceof ApiError ? error.code : error),
  );

t.test('a hundred parallel calls with one key have one effect, and all get its resource', async (t) => {
  const { deps, effects } = await openLedger(t);
  const calls = Array.from({ length: 100 }, () => newCall('k'));
  const answers = await Promise.all(calls.map((call) => run(deps(), call)));
  t.equal(await effects(), 1);
  t.equal(new Set(answers.map((answer) => answer.replace(' again', ''))).size, 1);
  t.equal(
    calls.filter(({ responseHeaders }) => responseHeaders.get('idempotent-replayed') === 'true').length,
    99,
  );
  t.equal(answers.filter((answer) => answer.endsWith(' again')).length, 99);
});

t.test('the same key with another message, or with another RPC, is rejected', async (t) => {
  const { deps, effects } = await openLedger(t);
  await run(deps(), newCall('k'));
  t.equal(await codeOf(run(deps(), newCall('k'), 'sub_2')), ErrorCode.IDEMPOTENCY_KEY_REUSED);
  const other = { ...newCall('k'), method: AttestationService.method.getBundle };
  t.equal(await codeOf(run(deps(), other)), ErrorCode.IDEMPOTENCY_KEY_REUSED);
  t.equal(await effects(), 1);
});

t.test(
  'keys of different holders, and calls without a key, have nothing to do with each other',
  async (t) => {
    const { deps, effects } = await openLedger(t);
    await run(deps(), newCall('k', 'key_a'));
    await run(deps(), newCall('k', 'key_b'));
    await run(deps(), newCall(undefined));
    await run(deps(), newCall(undefined));
    t.equal(await effects(), 4);
  },
);

t.test('an effect that fails leaves nothing, and the key can be used again', async (t) => {
  const { deps, effects } = await openLedger(t);
  const refusal = new ApiError(ErrorCode.SUBMISSION_NOT_CORRECTABLE, 'no');
  t.equal(await codeOf(run(deps(), newCall('k'), 'sub_1', refusal)), ErrorCode.SUBMISSION_NOT_CORRECTABLE);
  t.equal(await effects(), 0);
  t.notMatch(await run(deps(), newCall('k'), 'sub_2'), /again/);
});

t.test('an expired key is a new key', async (t) => {
  const { deps, effects, pool } = await openLedger(t);
  await run(deps(), newCall('k'));
  await pool`UPDATE idempotency_key SET created_at = created_at - interval '25 hours'`;
  t.notMatch(await run(deps(), newCall('k'), 'sub_2'), /again/);
  t.match(await run(deps(), newCall('k'), 'sub_2'), /again/);
  t.equal(await effects(), 2);
});

t.test('a replay is known after the secret key was rotated', async (t) => {
  const { deps } = await openLedger(t);
  await run(deps(OLD), newCall('k'));
  t.match(await run(deps(`${NEW},${OLD}`), newCall('k')), /again/);
});

t.test('a key that stays busy is in progress, after the patience for it', async (t) => {
  const { deps, pool, effects } = await openLedger(t);
  let now = 0;
  const impatient = { ...deps(), clock: () => (now += 1_000) };
  await pool.begin(async (tx) => {
    await tx`SELECT pg_advisory_xact_lock(hashtextextended('key_a' || ' ' || 'k', 0))`;
    const error = await run(impatient, newCall('k')).catch((thrown: unknown) => thrown);
    t.match(error, { code: ErrorCode.IDEMPOTENCY_IN_PROGRESS, headers: { 'retry-after': '1' } });
  });
  t.equal(await effects(), 0);
  t.notMatch(await run(deps(), newCall('k')), /again/);
});

t.test('keys past their retention are deleted, some at a time, and no other', async (t) => {
  const { deps, pool } = await openLedger(t);
  for (const key of ['a', 'b', 'c', 'fresh']) await run(deps(), newCall(key));
  await pool`UPDATE idempotency_key SET created_at = created_at - interval '25 hours' WHERE key <> 'fresh'`;
  t.equal(await pruneIdempotencyKeys(pool, 86_400_000, 2), 2);
  t.equal(await pruneIdempotencyKeys(pool, 86_400_000, 2), 1);
  t.equal(await pruneIdempotencyKeys(pool, 86_400_000, 2), 0);
  t.same(await pool`SELECT key FROM idempotency_key`, [{ key: 'fresh' }]);
});

t.test('an old key that is claimed again while old keys are deleted is kept', async (t) => {
  const { deps, pool } = await openLedger(t);
  await run(deps(), newCall('k'));
  await pool`UPDATE idempotency_key SET created_at = created_at - interval '25 hours'`;
  const pruned = await pool.begin(async (tx) => {
    await tx`UPDATE idempotency_key SET created_at = clock_timestamp()`;
    const pruning = pruneIdempotencyKeys(pool, 86_400_000, 10);
    pruning.catch(() => {});
    await until('the pruning waits for the claim', async () => {
      const waiting =
        await pool`SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      return waiting.length > 0;
    });
    return { pruning };
  });
  t.equal(await pruned.pruning, 0);
  t.match(await run(deps(), newCall('k')), /again/);
});
