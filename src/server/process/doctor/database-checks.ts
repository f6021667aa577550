/** Checks of Postgres: what it is, whether it keeps what it confirms, and what is in it. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '../../../config/config.js';
import { connectPool, type Pool } from '../../database/connect.js';
import { assertMigrated } from '../../database/migrate.js';
import {
  assertSession,
  confirmDurable,
  MAX_CLOCK_OFFSET_MS,
  readClockOffsetMs,
} from '../../database/session.js';
import { findUnprepared } from '../../log/store/partitions.js';
import { findSecretKeyProblem } from '../secret-key-manager.js';
import { type Check, failed, ok, type Result, warning } from './finding.js';
import { sizeText } from './machine-checks.js';

const MIN_VERSION = 15;
const WARN_OFFSET_MS = 1_000;
const SILENT_WORKER_SECONDS = 30;
const COMMIT_MS = 3_000;
/** SQLSTATE. */
const DISK_FULL = '53100';

type Database = {
  pool: Pool;
  config: Pick<Config, 'poolSize' | 'apiProcesses' | 'secrets' | 'databaseReadUrl'>;
  statementTimeoutMs: number;
};

/** The checks that need a connection only. */
export function serverChecks({ pool, config, statementTimeoutMs }: Database): Check[] {
  return [
    { name: 'postgres', run: async () => checkServer(pool, config, statementTimeoutMs) },
    { name: 'clock', run: async () => [await checkClock(pool)] },
    ...(config.databaseReadUrl === undefined ? [] : [readReplicaCheck(config.databaseReadUrl)]),
    { name: 'schema', run: async () => [await checkSchema(pool)] },
  ];
}

const readReplicaCheck = (url: string): Check => ({
  name: 'DATABASE_READ_URL',
  run: async () => [await checkReadReplica(url)],
});

/** The checks that need the tables. */
export function tableChecks({ pool, config }: Database): Check[] {
  return [
    { name: 'commits', run: async () => [await checkCommits(pool)] },
    { name: 'space', run: async () => [await checkSpace(pool)] },
    { name: 'secret key', run: async () => [await checkSecretKey(pool, config)] },
    { name: 'workers', run: async () => [await checkWorkers(pool)] },
    { name: 'partitions', run: async () => checkPartitions(pool) },
    { name: 'sizes', run: async () => checkSizes(pool) },
  ];
}

async function checkServer(
  pool: Pool,
  { poolSize, apiProcesses }: Database['config'],
  statementTimeoutMs: number,
): Promise<Result[]> {
  await assertSession(pool, { statementTimeoutMs });
  const [row] = await pool<
    { version: string; number: number; most: number; used: number; standbys: string; isReplica: boolean }[]
  >`
    SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int / 10000 AS number,
      current_setting('max_connections')::int AS most, current_setting('synchronous_standby_names') AS standbys,
      pg_is_in_recovery() AS "isReplica",
      (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')::int AS used`;
  if (row === undefined) throw new Error('the database returned no row');
  const { version, number, most, used, standbys, isReplica } = row;
  if (isReplica) return [failed('it is a replica: DATABASE_URL must lead to the primary')];
  if (number < MIN_VERSION) return [failed(`Postgres ${version}: ${MIN_VERSION} or newer is needed`)];
  const durable = standbys === '' ? 'no synchronous standby' : `synchronous standbys ${standbys}`;
  return [ok(`Postgres ${version}, ${durable}`), checkConnections({ most, used, poolSize, apiProcesses })];
}

/** Statements and transactions of an API process's pool, and what it has beside; a worker has about as many. */
const CONNECTIONS_BESIDE = 20;

function checkConnections(of: {
  most: number;
  used: number;
  poolSize: number;
  apiProcesses: number;
}): Result {
  const perProcess = Math.ceil(1.5 * of.poolSize) + CONNECTIONS_BESIDE;
  const wanted = perProcess * (of.apiProcesses + 1);
  const text = `${of.used} of ${of.most} connections in use; an API and a worker process take up to ${wanted}`;
  return wanted > of.most
    ? warning(`${text}: raise max_connections, or lower PG_POOL`, 'connections')
    : ok(text, 'connections');
}

async function checkClock(pool: Pool): Promise<Result> {
  const offsetMs = await readClockOffsetMs(pool);
  const text = `this machine's clock is ${Math.abs(offsetMs)} ms ${offsetMs < 0 ? 'behind' : 'ahead of'} the database's`;
  if (Math.abs(offsetMs) > MAX_CLOCK_OFFSET_MS) return failed(`${text}: run an NTP client on both machines`);
  return Math.abs(offsetMs) > WARN_OFFSET_MS ? warning(text) : ok(text);
}

/** A commit that waits for the synchronous standby, if there is one. */
async function checkCommits(pool: Pool): Promise<Result> {
  const late = failed(
    `none is confirmed within ${COMMIT_MS / 1000} s: synchronous_standby_names names a standby that does not answer`,
  );
  const timeout = new AbortController();
  const isLate = delay(COMMIT_MS, late, { signal: timeout.signal }).catch(() => late);
  const commit = confirmDurable(pool).then(() => ok('are confirmed'));
  return Promise.race([commit, isLate]).finally(() => timeout.abort());
}

const TRIED = new Error('tried');

/** Whether Postgres has space for a mebibyte, in a table that is there for the moment; nothing is committed. */
async function checkSpace(pool: Pool): Promise<Result> {
  const outcome: unknown = await pool
    .begin(async (tx) => {
      await tx`CREATE TEMP TABLE doctor AS SELECT repeat(md5(n::text), 32) AS text FROM generate_series(1, 1024) n`;
      throw TRIED;
    })
    .catch((error: unknown) => error);
  if (outcome === TRIED) return ok('Postgres has room');
  const { code, message } = outcome as Error & { code?: string };
  return code === DISK_FULL ? failed(`${message}: make room on its disk`) : warning(`not tried: ${message}`);
}

async function checkSchema(pool: Pool): Promise<Result> {
  const newer = await assertMigrated(pool);
  if (newer === undefined) return ok('up to date');
  return warning(
    `the database is of a newer version (it has ${newer}): upgrade this program too, unless you went back to it`,
  );
}

/** The standby from which processes read while no primary responds. */
async function checkReadReplica(url: string): Promise<Result> {
  const pool = connectPool({ url, name: 'doctor', max: 1, statementTimeoutMs: COMMIT_MS });
  try {
    const [row] = await pool<{ isReplica: boolean }[]>`SELECT pg_is_in_recovery() AS "isReplica"`;
    return row?.isReplica ? ok('is a replica') : failed('is no replica: name the synchronous standby');
  } finally {
    await pool.end({ timeout: 1 });
  }
}

async function checkSecretKey(pool: Pool, { secrets }: Database['config']): Promise<Result> {
  const problem = await findSecretKeyProblem(pool, secrets.secretKeys);
  return problem === undefined ? ok('SECRET_KEY is that of the database') : failed(problem);
}

async function checkWorkers(pool: Pool): Promise<Result> {
  const [row] = await pool<{ alive: number; known: number }[]>`
    SELECT count(*) FILTER (WHERE seen_at > clock_timestamp() - ${SILENT_WORKER_SECONDS}::int * interval '1 second')::int AS alive,
      count(*)::int AS known FROM worker`;
  const { alive, known } = row ?? { alive: 0, known: 0 };
  if (alive > 0) return ok(`${alive} running`);
  return warning(
    known === 0
      ? 'none runs: start attest worker'
      : 'none has reported for 30 s: nothing is sealed; see its log',
  );
}

/** A worker adds partitions every half minute. */
async function checkPartitions(pool: Pool): Promise<Result[]> {
  const unprepared = await findUnprepared(pool);
  if (unprepared.length === 0) return [ok('each log has a whole partition ahead')];
  return unprepared.map(({ origin, hasRoom }) => {
    const toDo = 'start attest worker, which adds one, or see its log';
    return hasRoom
      ? warning(`no whole partition ahead: ${toDo}`, origin)
      : failed(`no partition for the next leaf, nothing is accepted: ${toDo}`, origin);
  });
}

async function checkSizes(pool: Pool): Promise<Result[]> {
  const [row] = await pool<{ bytes: number; submissions: number; tables: string }[]>`
    SELECT pg_database_size(current_database()) AS bytes,
      (SELECT coalesce(sum(size), 0)::bigint FROM log l CROSS JOIN LATERAL (
        SELECT greatest(coalesce(max(log_index) + 1, 0) - l.archived_size, 0) AS size FROM submission
        WHERE log_id = l.id) leaves) AS submissions,
      (SELECT string_agg(name || ' ' || pg_size_pretty(bytes), ', ' ORDER BY bytes DESC) FROM (
        SELECT coalesce(pg_partition_root(oid), oid)::regclass::text AS name, sum(pg_total_relation_size(oid)) AS bytes
        FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
        GROUP BY 1 ORDER BY 2 DESC LIMIT 3) largest) AS tables`;
  if (row === undefined) throw new Error('the database returned no row');
  return [ok(`${row.submissions} submissions, database ${sizeText(row.bytes)} (${row.tables})`)];
}
