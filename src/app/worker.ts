import { setTimeout as delay } from 'node:timers/promises';
import { ulid } from 'ulid';
import type { Job } from '../../gen/attestation/jobs/v1/jobs_pb.js';
import type { Logger } from '../logger.js';
import type { Check } from '../ops.js';
import { jobSubject, type Stage } from '../pipeline/job.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { createLocalRunner, findDueJobs, findDueLogJobs, type LocalRunner } from '../pipeline/reconcile.js';
import type { Register } from '../pipeline/register.js';
import { runJob } from '../pipeline/stages.js';
import { consume, type StopConsuming } from '../queue/consume.js';
import type { Queue } from '../queue/jetstream.js';
import type { KeyRing } from '../secret-key.js';
import type { SigningKeys } from '../secrets.js';
import { connectPool, type Pool } from '../store/connect.js';
import { pruneIdempotencyKeys } from '../store/idempotency.js';
import { assertMigrated } from '../store/migrate.js';
import { pruneUsage, rollUpUsage } from '../store/usage.js';
import { pruneDeliveries } from '../store/webhook-deliveries.js';
import { pruneRanges } from '../store/webhook-ranges.js';
import { pruneWebhooks } from '../store/webhooks.js';
import { createJobSender, type JobSender, readJob } from './jobs.js';
import { checkRegisters, findLogProblems, findMissingInRegister } from './register-check.js';
import { checkpointSigners, setUpLogs, setUpWitnesses, type WitnessSetup } from './setup.js';
import type { Stops } from './stops.js';
import { openWebhooks, type WebhooksOptions } from './webhooks.js';

/** What a worker is started with. */
export type WorkerOptions = {
  databaseUrl: string;
  natsUrl: string;
  /** Sets the stream apart from others on the same servers. */
  queuePrefix: string;
  logDomain: string;
  logKeys: SigningKeys;
  register: Register;
  witnesses: readonly WitnessSetup[];
  witnessDeadlineMs: number;
  secretKeys: KeyRing;
  /** The API's address as the world sees it; read when an event is sent. */
  baseUrl: () => string;
  webhookHistoryMs: number;
  allowInsecureDestinations: boolean;
  batchIntervalMs: number;
  batchMaxLeaves: number;
  idempotencyRetentionMs: number;
  poolSize: number;
  log: Logger;
  observeAttempts: WebhooksOptions['observeAttempts'];
};

/** A running worker. */
export type Worker = { pipeline: Pipeline; checks: Check[] };

/** How many jobs of a stage one worker has under way: a slow witness must not hold up the others. */
const CONCURRENCY: Readonly<Record<Stage, number>> = {
  seal: 4,
  witness: 16,
  settle: 4,
  notify: 4,
  webhook: 256,
};
const STAGES = Object.keys(CONCURRENCY) as Stage[];
/** Stages that look once more for what came while they worked; for others the next look is soon enough. */
const LOOKED_AT_AGAIN: readonly Stage[] = ['seal', 'witness'];
const RECONCILE_MS = 1_000;
/** A job that is still due so long after it was sent is run here: its message may be with a worker that died. */
const OVERDUE_MS = 3_000;
const PRUNE_MS = 60_000;
const PRUNE_ROWS = 10_000;
const WITNESS_TIMEOUT_MS = 30_000;
const STATEMENT_TIMEOUT_MS = 60_000;

/**
 * Starts sealing, asking witnesses and settling, over JetStream and, for what that misses, from the tables. Whatever it
 * opens is in `stops`, also when it throws: jobs under way are finished first.
 */
export async function startWorker(options: WorkerOptions, stops: Stops): Promise<Worker> {
  const { log } = options;
  const pool = connectPool({
    url: options.databaseUrl,
    name: 'worker',
    max: options.poolSize,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
  });
  stops.add(() => pool.end({ timeout: 5 }));
  await assertMigrated(pool);
  await setUpLogs(pool, options.logDomain, options.logKeys);
  await setUpWitnesses(pool, options.witnesses, options.witnessDeadlineMs);
  await checkRegisters({ pool, register: options.register, log });
  const { webhooks, ...sending } = openWebhooks(options);
  const stopping = new AbortController();
  const consuming: StopConsuming[] = [];
  const jobs = createJobSender({
    url: options.natsUrl,
    prefix: options.queuePrefix,
    name: 'attest worker',
    log,
    onQueue: async (queue) => {
      await queue.ensure(STAGES);
      if (stopping.signal.aborted) return;
      consuming.push(...STAGES.map((stage) => consumeStage(pipeline, queue, jobs, stage)));
    },
  });
  const pipeline: Pipeline = {
    pool,
    log,
    register: options.register,
    witnesses: options.witnesses,
    webhooks,
    signerOf: checkpointSigners(options.logKeys),
    settings: {
      batchIntervalMs: options.batchIntervalMs,
      batchMaxLeaves: options.batchMaxLeaves,
      witnessTimeoutMs: WITNESS_TIMEOUT_MS,
    },
    newBatchId: () => `btc_${ulid()}`,
    random: Math.random,
    send: (job) => (jobs.queue() === undefined ? local.run(job) : jobs.send(job)),
  };
  const local = createLocalRunner(pipeline);
  const dueSince = new Map<string, number>();
  const loops = [
    every(RECONCILE_MS, stopping.signal, log, () => reconcile(pipeline, jobs, local, dueSince)),
    every(PRUNE_MS, stopping.signal, log, async () => {
      while ((await rollUpUsage(pool, PRUNE_ROWS)) === PRUNE_ROWS);
      await pruneUsage(pool);
      await pruneIdempotencyKeys(pool, options.idempotencyRetentionMs, PRUNE_ROWS);
      await pruneWebhookHistory(pool, options.webhookHistoryMs);
    }),
  ];
  stops.add(async () => {
    stopping.abort();
    sending.stop();
    await Promise.all([...loops, ...consuming.map((stop) => stop())]);
    await local.idle();
    await sending.close();
    await jobs.close();
  });
  return { pipeline, checks: [{ name: 'worker', check: () => findSealingProblem(pipeline) }] };
}

async function pruneWebhookHistory(pool: Pool, historyMs: number): Promise<void> {
  while ((await pruneDeliveries(pool, historyMs, PRUNE_ROWS)) === PRUNE_ROWS);
  await pruneRanges(pool, historyMs, PRUNE_ROWS);
  await pruneWebhooks(pool, historyMs);
}

async function findSealingProblem(pipeline: Pipeline): Promise<string | undefined> {
  return [...(await findLogProblems(pipeline)), ...(await findMissingInRegister(pipeline))][0];
}

function consumeStage(pipeline: Pipeline, queue: Queue, jobs: JobSender, stage: Stage): StopConsuming {
  return consume(
    queue,
    {
      stage,
      concurrency: CONCURRENCY[stage],
      handle: (payload) => runJob(pipeline, readJob(payload)),
      afterDone: LOOKED_AT_AGAIN.includes(stage)
        ? (payload) => sendAgainIfDue(pipeline, jobs, readJob(payload))
        : async () => {},
    },
    pipeline.log,
  );
}

/** What came up while a job was worked on could not be sent, because its like was still there. */
async function sendAgainIfDue(pipeline: Pipeline, jobs: JobSender, done: Job): Promise<void> {
  const due = await findDueLogJobs(pipeline);
  for (const job of due) if (jobSubject(job) === jobSubject(done)) jobs.send(job);
}

/**
 * Hands on what is due; what JetStream does not take is run here, and so is what it has not brought to an end.
 *
 * @param dueSince by subject, since when the job was found due each time; kept from call to call
 */
async function reconcile(
  pipeline: Pipeline,
  jobs: JobSender,
  local: LocalRunner,
  dueSince: Map<string, number>,
): Promise<void> {
  const due = await findDueJobs(pipeline);
  const sent = jobs.queue() !== undefined && (await sendAll(jobs, due));
  const nowMs = performance.now();
  const subjects = new Set(due.map(jobSubject));
  for (const subject of dueSince.keys()) if (!subjects.has(subject)) dueSince.delete(subject);
  for (const job of due) {
    const sinceMs = dueSince.get(jobSubject(job)) ?? nowMs;
    dueSince.set(jobSubject(job), sinceMs);
    if (!sent || nowMs - sinceMs >= OVERDUE_MS) local.run(job);
  }
}

/** Whether JetStream took all of them; the stream is made again for the next time when it did not. */
async function sendAll(jobs: JobSender, due: readonly Job[]): Promise<boolean> {
  try {
    for (const job of due) await jobs.publish(job);
    return true;
  } catch {
    await jobs
      .queue()
      ?.ensure(STAGES)
      .catch(() => {});
    return false;
  }
}

async function every(
  ms: number,
  stopping: AbortSignal,
  log: Logger,
  run: () => Promise<void>,
): Promise<void> {
  while (!stopping.aborted) {
    await run().catch((error: unknown) =>
      log.error({ err: error }, 'periodic work failed; it is tried again'),
    );
    await delay(ms, undefined, { signal: stopping }).catch(() => {});
  }
}
