/** What operators watch: every figure is there, in the form Prometheus wants. */
import { join } from 'node:path';
import t from 'tap';
import { connectPool, readPoolUse } from '../../src/server/database/connect.js';
import { makeWitnessDue } from '../../src/server/witnessing/store/witness-leases.js';
import { startLoad } from '../support/calling/load.js';
import { makeServerTls } from '../support/certificates/server-tls.js';
import { setScene } from '../support/fault-fixture.js';
import { checkMetrics } from '../support/judging/check-metrics.js';
import type { ServiceProcess } from '../support/servers/installation.js';
import { until } from '../support/until.js';
import { untilWitnessed } from '../support/wait-for-idle.js';

const { tls } = await makeServerTls(t);
const files = t.testdir({ 'tls.pem': tls.cert, 'tls-key.pem': tls.key });
const settings = { TLS_CERT_FILE: join(files, 'tls.pem'), TLS_KEY_FILE: join(files, 'tls-key.pem') };
const { installation, pool, servers, tsa, apiKey } = await setScene(t);
const worker = await installation.startWorker();
const api = await installation.startApi();

async function scrape({ opsUrl }: ServiceProcess): Promise<string> {
  return (await fetch(`${opsUrl}/metrics`)).text();
}

/** The value of a metric; undefined when it has none. */
async function value(process: ServiceProcess, series: string): Promise<number | undefined> {
  const line = (await scrape(process)).split('\n').find((one) => one.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length));
}

/** @returns how many were taken */
async function submit(): Promise<number> {
  const load = startLoad({ apis: () => [api.baseUrl], apiKey, clients: 2, most: 10 });
  await load.more(10);
  await load.stop();
  return load.acknowledged.length;
}

const OF_LIVE = '{log="live.log.example.com",witness="foreign"}';

t.test('each witness has its last success, its failures since, and its next attempt', async (t) => {
  const taken = await submit();
  await untilWitnessed(pool);
  const [{ now = 0 } = {}] = await pool`SELECT extract(epoch FROM clock_timestamp())::float8 AS now`;
  const vouched = await value(worker, `attest_witness_last_success_timestamp_seconds${OF_LIVE}`);
  t.ok(vouched !== undefined && vouched > now - 3_600 && vouched <= now, `${vouched}`);
  t.equal(await value(worker, `attest_witness_consecutive_failures${OF_LIVE}`), 0);
  t.equal(await value(worker, `attest_witness_leaves_behind${OF_LIVE}`), 0);
  t.equal(await value(worker, 'attest_log_sealed_leaves{log="live.log.example.com"}'), taken);
  tsa.mood = 'fails';
  const more = await submit();
  await until('it has failed', async () => {
    const behind = await value(worker, `attest_witness_leaves_behind${OF_LIVE}`);
    return behind === more && (await value(worker, `attest_witness_consecutive_failures${OF_LIVE}`));
  });
  const next = await value(worker, `attest_witness_next_attempt_timestamp_seconds${OF_LIVE}`);
  t.ok(next !== undefined && next > now && next < now + 3_600, `${next}`);
  tsa.mood = 'answers';
  await makeWitnessDue(pool, 'foreign');
  await untilWitnessed(pool);
  t.equal(await value(worker, `attest_witness_consecutive_failures${OF_LIVE}`), 0);
});

t.test('a process has metrics of its own state', async (t) => {
  for (const process of [worker, api]) {
    t.match(await scrape(process), /^attest_build_info\{version="\d+\.\d+\.\d+",node="v\d+/m);
    t.equal((await value(process, 'attest_pool_waiting{pool="worker"}')) ?? 0, 0);
  }
  t.equal(await value(api, 'attest_accept_queued_submissions'), 0);
  t.ok(
    ((await value(worker, 'attest_certificate_expiry_timestamp_seconds{certificate="witness foreign"}')) ??
      0) > 1.7e9,
  );
  installation.env = { ...installation.env, ...settings };
  const secure = await installation.startApi();
  t.ok(
    ((await value(secure, 'attest_certificate_expiry_timestamp_seconds{certificate="tls"}')) ?? 0) > 1.7e9,
  );
  await secure.stop();
});

t.test('connections in use and those who wait for one are counted', async (t) => {
  const small = connectPool({ url: servers.postgres.url, name: 'small', max: 2, statementTimeoutMs: 60_000 });
  const use = () => readPoolUse().find((one) => one.pool === 'small');
  t.same(use(), { pool: 'small', inUse: 0, waiting: 0 });
  const holder = await pool.reserve();
  await holder`SELECT pg_advisory_lock(77)`;
  const held = [
    small`SELECT pg_advisory_xact_lock(77)`,
    small.unsafe('SELECT pg_advisory_xact_lock(77)'),
    small`SELECT pg_advisory_xact_lock(${77}) ${small`WHERE true`}`,
    small.begin((tx) => tx`SELECT pg_advisory_xact_lock(77)`),
    small.begin((tx) => tx`SELECT pg_advisory_xact_lock(77)`),
  ].map(async (one) => void (await one));
  await until('all are counted', () => use()?.waiting === 2);
  t.same(use(), { pool: 'small', inUse: 3, waiting: 2 });
  await holder`SELECT pg_advisory_unlock_all()`;
  holder.release();
  await Promise.all(held);
  await t.rejects(small`SELECT 1 / 0`);
  t.same(use(), { pool: 'small', inUse: 0, waiting: 0 });
  await small.end();
  t.equal(use(), undefined);
});

t.test('promtool accepts a scrape', async (t) => {
  for (const process of [worker, api]) t.equal(await checkMetrics(await scrape(process)), '');
});
