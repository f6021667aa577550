/** Health of a service as callers see it: when it is degraded, and what it costs to know. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { InfoService } from '../../../gen/attestation/v1/service_pb.js';
import { createLogger } from '../../../src/server/core/logger.js';
import { connectPool } from '../../../src/server/database/connect.js';
import { createDegradationCheck } from '../../../src/server/ops/degradation.js';
import { createHealthCheck } from '../../../src/server/ops/health-check.js';
import { deleteWorker, recordWorker } from '../../../src/server/pipeline/workers.js';
import { openRegister } from '../../../src/server/witnessing/register/open-register.js';
import { startApp } from '../../support/app.js';
import { newKey } from '../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { testDatabase } from '../../support/servers/shared-servers.js';
import { until } from '../../support/until.js';

const app = await startApp(t);
const surfaces = app.surfaces();
const { getHealth } = InfoService.method;

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
