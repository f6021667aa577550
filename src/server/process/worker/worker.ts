import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { ulid } from 'ulid';
import type { Config } from '../../../config/config.js';
import type { Logger } from '../../core/logger.js';
import { createOutageLogs } from '../../core/outage-log.js';
import type { ShutdownHooks } from '../../core/shutdown.js';
import { connectPool, type Pool } from '../../database/connect.js';
import { assertMigrated } from '../../database/migrate.js';
import { assertSession } from '../../database/session.js';
import { openOperatorStore } from '../../exports/destinations/operator-store.js';
import { createJobSender, type JobSender } from '../../jobs/job-sender.js';
import { toleratingOutage } from '../../jobs/tolerate-outage.js';
import type { HeldLogKeys } from '../../keys/log-key.js';
import { openTufKeys } from '../../keys/tuf-keys.js';
import { checkpointSigners } from '../../log/checkpoint-signers.js';
import { openLogCache } from '../../log/log-cache.js';
import { getLogDomain } from '../../log/log-domain.js';
import { type LogKeyState, readLogKeyStates, warnOfMissingMlDsaKeys } from '../../log/log-key-states.js';
import { openLogKeys } from '../../log/log-keys.js';
import { type MonitoredRegister, monitorWrites } from '../../log/register/monitored-register.js';
import type { Register } from '../../log/register/register.js';
import {
  checkRegisters,
  findLogProblems,
  findRegisterProblems,
  type LogProblem,
} from '../../log/register/register-check.js';
import { setUpLogs } from '../../log/set-up-logs.js';
import { clockCheck } from '../../ops/clock-check.js';
import { environmentChecks } from '../../ops/environment-checks.js';
import type { Check } from '../../ops/ops-listener.js';
import { consumeStages, STAGES } from '../../pipeline/consumers.js';
import type { Pipeline } from '../../pipeline/pipeline.js';
import { createLocalRunner } from '../../pipeline/reconcile.js';
import { createReconcilers } from '../../pipeline/reconciler.js';
import { deleteWorker, recordWorker } from '../../pipeline/workers.js';
import type { StorageDeps } from '../../public/storage/log-storage.js';
import { createLogStorer, type LogStorer } from '../../public/storage/log-storer.js';
import type { StopConsuming } from '../../queue/consume.js';
import { readStoredPage } from '../../web/stored-page.js';
import { setUpWitnesses, type WitnessSetup } from '../../witnessing/set-up-witnesses.js';
import { setUpSecretKeys } from '../secret-key-manager.js';
import type { Standby } from '../standby.js';
import { type ExportsOptions, openExports } from './export-shipping.js';
import { type Repeat, startMaintenance } from './maintenance.js';
import { reencryptExports } from './reencrypt-exports.js';
import { createTufRenewal, type TufStatusReader, tufStatusReader } from './tuf-renewal.js';
import { openWebhooks, type WebhooksOptions } from './webhook-sending.js';

/** The options of a worker. `queuePrefix` separates the stream from others on the same servers. */
export type WorkerOptions = Standby &
  WebhooksOptions &
  ExportsOptions & {
    config: Config;
    queuePrefix: string;
    register: Register;
    /** The public address of the log, for trust roots in LOG_STORAGE. */
    verifyUrl: () => string;
    /** The witnesses of the configuration, and an embedded one. */
    witnesses: readonly WitnessSetup[];
    observeAlarm: Pipeline['observeAlarm'];
    observeSettled: Pipeline['observeSettled'];
  };

/** A running worker. */
export type Worker = {
  pipeline: Pipeline;
  jobs: JobSender;
  checks: Check[];
  /** Checks the keys of logs. */
  readLogKeys: () => Promise<LogKeyState[]>;
  readTufStatus: TufStatusReader;
  /** What writes the public log to LOG_STORAGE, if that is set. */
  storer: LogStorer | undefined;
};

const WITNESS_TIMEOUT_MS = 30_000;
/** The longest statement seals a batch: 65,536 leaves take half a second. A server silent for longer than this is unavailable. */
const STATEMENT_TIMEOUT_MS = 10_000;
const SEALING_MS_PER_LEAF = 0.1;

/**
 * Starts the stages: jobs from JetStream, and from the tables for what it misses. Registers everything it opens in `hooks`,
 * also if it throws; shutdown finishes jobs in progress first.
 */
export async function startWorker(options: WorkerOptions, hooks: ShutdownHooks): Promise<Worker> {
  const { config, witnesses, log, localPool, standby } = options;
  const register = monitorWrites(options.register);
  const logKeys = await openLogKeys(config.secrets, hooks);
  const tufKeys = await openTufKeys(config.secrets.tuf, hooks);
  const pool = await setUp(options, { register, logKeys }, hooks);
  const workerId = await registerWorker(localPool);
  const { webhooks, ...sending } = openWebhooks(options);
  const { exports, ...shipping } = await openExports(options);
  const stopping = createStopping();
  const outageLogs = createOutageLogs(log, () => performance.now());
  const consuming: StopConsuming[] = [];
  const jobs = createJobSender({
    url: config.natsUrl,
    prefix: options.queuePrefix,
    name: 'attest worker',
    replicas: config.natsReplicas,
    stages: STAGES,
    log,
    onQueue: (queue) => {
      if (!stopping.signal.aborted) consuming.push(...consumeStages(pipeline, queue, jobs, outageLogs));
    },
  });
  const pipeline: Pipeline = {
    pool,
    localPool,
    assertCommits: standby.assertAnswers,
    log,
    register,
    witnesses,
    webhooks,
    exports,
    signerOf: checkpointSigners(logKeys),
    settings: settingsOf(config),
    aborting: webhooks.aborting,
    newBatchId: () => `btc_${ulid()}`,
    random: Math.random,
    observeAlarm: options.observeAlarm,
    observeSettled: options.observeSettled,
    send: (job) => (jobs.queue() === undefined ? local.run(job) : jobs.send(job)),
  };
  const local = createLocalRunner(pipeline, outageLogs);
  const lookAt = createReconcilers(pipeline, jobs, local);
  const repeat: Repeat = (ms, work, run) =>
    every(ms, stopping.signal, log, () => toleratingOutage(outageLogs, work, run, undefined));
  const readTufStatus = tufStatusReader(pool);
  const renewTuf = createTufRenewal(pipeline, tufKeys, readTufStatus);
  const storer = await openStorer(options, { ...pipeline, signal: stopping.signal }, hooks);
  const work = { workerId, lookAt, repeat, renewTuf, storer, stopping: stopping.signal };
  const loops = startMaintenance(pipeline, options, work);
  hooks.add(async () => {
    stopping.abort();
    for (const { stop } of [sending, shipping]) stop();
    await Promise.all([...loops, ...consuming.map((stop) => stop())]);
    await local.idle();
    await deleteWorker(localPool, workerId).catch(() => {});
    for (const { close } of [sending, shipping]) await close();
    await jobs.close();
  });
  const readLogKeys = () => readLogKeyStates(pool, logKeys);
  const sealing = environmentChecks('worker', () => findSealingProblems(pipeline, { register, readLogKeys }));
  const checks = [...sealing, clockCheck(pool)];
  return { pipeline, jobs, readLogKeys, readTufStatus, checks, storer };
}

/** Each periodic task listens to it, and each write in progress to LOG_STORAGE. */
function createStopping(): AbortController {
  const stopping = new AbortController();
  setMaxListeners(0, stopping.signal);
  return stopping;
}

async function openStorer(
  { config, verifyUrl }: WorkerOptions,
  deps: Pick<StorageDeps, 'pool' | 'log' | 'signerOf' | 'signal'>,
  hooks: ShutdownHooks,
): Promise<LogStorer | undefined> {
  if (config.logStorage === undefined) return undefined;
  const storage = await openOperatorStore(config.logStorage);
  hooks.add(storage.close);
  const sources = { verifyUrl, verifyPage: readStoredPage() };
  return createLogStorer({ ...deps, storage, logCache: await openLogCache(deps.pool) }, sources);
}

/** Opens the database and stores the configured logs and witnesses. */
async function setUp(
  { config, witnesses, log, guard }: WorkerOptions,
  { register, logKeys }: { register: Register; logKeys: HeldLogKeys },
  hooks: ShutdownHooks,
): Promise<Pool> {
  const pool = await openDatabase(config, guard, hooks);
  const { secretKeys } = config.secrets;
  await setUpSecretKeys(pool, secretKeys);
  await reencryptExports({ pool, log, secretKeys });
  await setUpLogs(pool, await getLogDomain(pool, log, config.logDomain), logKeys, config.logLanes);
  await warnOfMissingMlDsaKeys({ pool, log }, logKeys);
  await setUpWitnesses(pool, witnesses, {
    quorums: config.witnessPolicy,
    deadlineMs: config.witnessDeadlineMs,
  });
  await checkRegisters({ pool, register, log });
  return pool;
}

async function openDatabase(
  { databaseUrl, poolSize, batchMaxLeaves }: Config,
  guard: Standby['guard'],
  hooks: ShutdownHooks,
): Promise<Pool> {
  const sealingMs = Math.ceil(batchMaxLeaves * SEALING_MS_PER_LEAF);
  const session = { statementTimeoutMs: STATEMENT_TIMEOUT_MS + sealingMs };
  const pool = connectPool({ url: databaseUrl, name: 'worker', max: poolSize, guard, ...session });
  hooks.add(() => pool.end({ timeout: 5 }));
  await assertSession(pool, session);
  await assertMigrated(pool);
  return pool;
}

/** Registers this worker. @returns its id */
async function registerWorker(localPool: Pool): Promise<string> {
  const id = ulid();
  await recordWorker(localPool, id);
  return id;
}

function settingsOf({ batchIntervalMs, batchMaxLeaves }: WorkerOptions['config']): Pipeline['settings'] {
  return { batchIntervalMs, batchMaxLeaves, witnessTimeoutMs: WITNESS_TIMEOUT_MS };
}

type SealingNeeds = Pick<Worker, 'readLogKeys'> & { register: MonitoredRegister };

async function findSealingProblems(
  pipeline: Pipeline,
  { register, readLogKeys }: SealingNeeds,
): Promise<LogProblem[]> {
  return [
    ...(await findLogProblems(pipeline)),
    ...(await findRegisterProblems(pipeline.pool, register)),
    ...(await readLogKeys()).flatMap(keyProblem),
  ];
}

/** Without an ML-DSA-44 key batches are sealed all the same. */
function keyProblem({ log, algorithm, problem }: LogKeyState): LogProblem[] {
  if (problem === undefined || algorithm === 'ml-dsa-44') return [];
  return [{ environment: log.environment, reason: problem }];
}

async function every(
  ms: number,
  stopping: AbortSignal,
  log: Logger,
  run: () => Promise<void>,
): Promise<void> {
  while (!stopping.aborted) {
    await run().catch((error: unknown) => log.error({ err: error }, 'periodic work failed; retrying'));
    await delay(ms, undefined, { signal: stopping }).catch(() => {});
  }
}
