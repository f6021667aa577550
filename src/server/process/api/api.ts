import type { Config } from '../../../config/config.js';
import { createPrincipals, type Principals } from '../../admin/principals.js';
import { indexTails } from '../../attestations/artifacts/index-artifacts.js';
import { openStatementClock, type StatementClock } from '../../attestations/create/statement-clock.js';
import { writeTailTimes } from '../../attestations/lists/tail-times.js';
import type { Sequencers } from '../../attestations/sequence/sequencers.js';
import { createDsseSigners, setUpDsseKeys } from '../../attestations/signing/dsse-signers.js';
import { openStatementKeys } from '../../attestations/signing/statement-keys.js';
import { createSignatureStamper } from '../../attestations/stamps/signature-stamper.js';
import type { Logger } from '../../core/logger.js';
import type { ShutdownHooks } from '../../core/shutdown.js';
import { connectPool, type Pool, type PoolOptions } from '../../database/connect.js';
import { assertMigrated } from '../../database/migrate.js';
import { assertSession } from '../../database/session.js';
import type { ApiServer } from '../../http/server.js';
import { createJobSender, type JobSender } from '../../jobs/job-sender.js';
import { deriveKeyRing } from '../../keys/key-ring.js';
import { openTufKeys } from '../../keys/tuf-keys.js';
import { type LogCache, openLogCache } from '../../log/log-cache.js';
import { getLogDomain } from '../../log/log-domain.js';
import { createLogGuard } from '../../log/log-guard.js';
import { openLogKeys } from '../../log/log-keys.js';
import { checkRegisters, findLogProblems, type LogProblem } from '../../log/register/register-check.js';
import { setUpLogs } from '../../log/set-up-logs.js';
import { environmentChecks } from '../../ops/environment-checks.js';
import type { Check } from '../../ops/ops-listener.js';
import { onKeyChange } from '../../queue/broadcast.js';
import { loadSchemas } from '../../schema/registry.js';
import { setUpSecretKeys } from '../secret-key-manager.js';
import { type ApiOptions, type ApiServers, createApiServers } from './api-server.js';
import { openReplica, primaryCheck } from './replica.js';
import { openSequencers, writeConnections } from './sequencers.js';

/** A running API process. */
export type Api = ApiServers & {
  jobs: JobSender;
  pool: Pool;
  sequencers: Sequencers;
  /** How far this machine's clock is ahead of the database's; undefined if unknown. */
  offsetSeconds: () => number | undefined;
  /** Why reads come from the standby; undefined while they come from the primary. */
  awayReason: () => string | undefined;
  /** The checks of `/readyz`. */
  checks: Check[];
};

const STATEMENT_TIMEOUT_MS = 10_000;
/** Pages of submissions: planning one takes Postgres two thirds of the time that reading it does. */
const LIST_CONNECTIONS = 4;
const REFRESH_MS = 5_000;

/**
 * Opens the database, keys and queue of an API process and creates its servers without listening. Registers everything it
 * opens in `hooks`, also if it throws; shutdown answers requests in flight first.
 */
export async function startApi(options: ApiOptions, hooks: ShutdownHooks): Promise<Api> {
  const { config, log, register, localPool, guard, stampWitnesses: witnesses } = options;
  const pool = openPool(config, hooks, { name: 'api', max: config.poolSize, guard });
  const listPool = openPool(config, hooks, { name: 'list', max: LIST_CONNECTIONS, planOnce: true });
  const replica = openReplica(config, log, hooks);
  const readPool = replica.readsOf(pool);
  await assertSession(pool, { statementTimeoutMs: STATEMENT_TIMEOUT_MS });
  await assertMigrated(pool);
  await setUpSecretKeys(pool, config.secrets.secretKeys);
  const logKeys = await openLogKeys(config.secrets, hooks);
  await setUpLogs(pool, await getLogDomain(pool, log, config.logDomain), logKeys, config.logLanes);
  const logCache = await openLogCache(pool);
  await checkRegisters({ pool, register, log });
  const principals = createPrincipals(
    replica.readsOf(localPool),
    deriveKeyRing(config.secrets.secretKeys, 'api-key'),
    Date.now,
  );
  const jobs = openJobs(options, principals, hooks);
  const logGuard = createLogGuard(register, logCache, log);
  const writePool = openPool(config, hooks, {
    name: 'accept',
    max: writeConnections((await logCache.activeLogs()).length),
    onClose: logGuard.onConnectionLost,
  });
  const clock = await openStatementClock(writePool, log);
  const signers = await openSigners({ config, pool, logCache, clock }, hooks);
  refresh(hooks, async () => {
    await logCache.refresh();
    await clock.compare();
    await logGuard.checkLogs(writePool);
  });
  refresh(hooks, () => guard(() => noteTails(pool, logCache)));
  refresh(hooks, () => guard(() => indexTails(pool)));
  const sequencers = openSequencers(options, { pool: writePool, logCache, guard: logGuard, jobs });
  hooks.add(sequencers.close);
  const stamper = createSignatureStamper({ pool, log, witnesses });
  hooks.add(async () => stamper.close());
  const servers = createApiServers(options, {
    pool,
    readPool,
    listPool: replica.readsOf(listPool),
    countPool: replica.impatient(localPool),
    awayReason: replica.reason,
    logCache,
    sequencers,
    principals,
    jobs,
    signers: signers.signers,
    logKeys,
    tufKeys: await openTufKeys(config.secrets.tuf, hooks),
    submissionClock: clock.now,
    schemas: loadSchemas({ dir: config.schemaDir }),
    stamper,
  });
  own(servers, log, hooks);
  const check = async () =>
    logCache.unreadyReason() ?? logGuard.unreadyReason() ?? clock.unreadyReason() ?? signers.unreadyReason();
  const logs = environmentChecks('api', () => findProblems({ pool: readPool, register, log }));
  const { offsetSeconds } = clock;
  const checks = [{ name: 'api', check }, ...logs, primaryCheck(replica)];
  return { ...servers, jobs, pool, sequencers, offsetSeconds, awayReason: replica.reason, checks };
}

/** Sends jobs to workers, and hears of changed API keys. */
function openJobs(
  { config, queuePrefix, log }: ApiOptions,
  principals: Principals,
  hooks: ShutdownHooks,
): JobSender {
  const jobs = createJobSender({
    url: config.natsUrl,
    prefix: queuePrefix,
    name: 'attest api',
    replicas: config.natsReplicas,
    stages: [],
    log,
    onQueue: (queue) => onKeyChange(queue, principals.evict),
  });
  hooks.add(jobs.close);
  return jobs;
}

function openPool(
  { databaseUrl }: Config,
  hooks: ShutdownHooks,
  options: Pick<PoolOptions, 'name' | 'max' | 'planOnce' | 'onClose' | 'guard'>,
): Pool {
  const pool = connectPool({ ...options, url: databaseUrl, statementTimeoutMs: STATEMENT_TIMEOUT_MS });
  hooks.add(() => pool.end({ timeout: 5 }));
  return pool;
}

/** Publishes the DSSE keys of this process. They sign from when the tables say, by the database's clock. */
async function openSigners(
  {
    config,
    pool,
    logCache,
    clock,
  }: { config: Config; pool: Pool; logCache: LogCache; clock: StatementClock },
  hooks: ShutdownHooks,
): Promise<ReturnType<typeof createDsseSigners>> {
  const { databaseMs } = clock;
  const held = await openStatementKeys(config.secrets.dsse, hooks);
  await setUpDsseKeys(pool, held, { databaseMs });
  await logCache.refresh();
  return createDsseSigners(held, { logCache, databaseMs });
}

async function noteTails(pool: Pool, logCache: LogCache): Promise<void> {
  for (const { id } of logCache.allLogs()) while (await writeTailTimes(pool, id));
}

/** Repeats the work; while the database is unavailable, the requests that need it report that. */
function refresh(hooks: ShutdownHooks, run: () => Promise<void>): void {
  let isRunning = false;
  const refreshing = setInterval(() => {
    if (isRunning) return;
    isRunning = true;
    run()
      .catch(() => {})
      .finally(() => {
        isRunning = false;
      });
  }, REFRESH_MS).unref();
  hooks.add(async () => clearInterval(refreshing));
}

/** Closes the servers at shutdown and reloads their certificates on SIGHUP. */
function own({ server: open, adminServer }: ApiServers, log: Logger, hooks: ShutdownHooks): void {
  for (const server of [open, adminServer]) {
    if (server === undefined) continue;
    hooks.add(server.close);
    reloadOnHangUp(server, log, hooks);
  }
}

function reloadOnHangUp(server: ApiServer, log: Logger, hooks: ShutdownHooks): void {
  const reloadTls = () => reload(server, log);
  process.on('SIGHUP', reloadTls);
  hooks.add(async () => process.off('SIGHUP', reloadTls));
}

/** Reloads certificate and key for new connections; keeps the old ones if the new ones are invalid. */
function reload(server: ApiServer, log: Logger): void {
  try {
    server.reloadTls();
    log.info('certificate and key were reloaded');
  } catch (error) {
    log.error({ err: error }, 'certificate and key are invalid; keeping the old ones');
  }
}

/** Why logs accept nothing, for `/readyz`. */
async function findProblems(deps: Parameters<typeof findLogProblems>[0]): Promise<LogProblem[]> {
  try {
    return await findLogProblems(deps);
  } catch (error) {
    throw new Error(`the database cannot be reached: ${(error as Error).message}`);
  }
}
