/**
 * Consumes: a published checkpoint that a witness has not vouched for.
 * Commit point: the transaction that stores the evidence under (log, witness, tree size).
 * Emits: a settle job. When to ask again after a failure stands in the tables, where the reconciler finds it.
 * A crash leaves: a lease that runs out within seconds; then another worker asks again.
 */
import { checkpointBody } from '../../proof/log/checkpoint.js';
import { DONE, type Outcome } from '../queue/outcome.js';
import { retryWhileUnavailable } from '../store/database/database-errors.js';
import { type BatchRow, findNewestPublishedBatch } from '../store/log/batches.js';
import { getLog, type Log } from '../store/log/logs.js';
import {
  endBackoff,
  leaseWitness,
  recordWitnessFailure,
  releaseWitness,
  renewWitnessLease,
} from '../store/witnesses/witness-leases.js';
import { listWitnessStates, recordEvidence, type WitnessState } from '../store/witnesses/witnesses.js';
import type { WitnessEvidence } from '../witness/witness.js';
import { settleJob } from './jobs/job.js';
import { keepRenewing, LEASE_MS } from './lease.js';
import type { ConfiguredWitness, LogPipeline } from './pipeline.js';

/** A witness that answers at all does so sooner; the log says so of one that has not. */
const SLOW_MS = 5_000;
const FIRST_BACKOFF_MS = 1_000;
/** How long a witness that fails is left alone at most while a batch within its deadline waits for it. */
export const LAST_BACKOFF_MS = 30_000;
const AFTER_DEADLINE_BACKOFF_MS = 60 * 60_000;

/** Asks one witness about the newest published checkpoint of a log, unless it has vouched for it or is not due. */
export async function witness(pipeline: LogPipeline, logId: number, name: string): Promise<Outcome> {
  const configured = pipeline.witnesses.find((candidate) => candidate.witness.name === name);
  if (configured === undefined) return { type: 'giveUp', reason: `this worker has no witness named ${name}` };
  const state = await findState(pipeline, logId, name);
  const newest = await findNewestPublishedBatch(pipeline.pool, logId);
  if (state === undefined || newest === undefined || state.coversTreeSize >= newest.treeSize) return DONE;
  const attempt = await leaseWitness(pipeline.pool, logId, name, LEASE_MS);
  if (attempt === undefined) return DONE;
  const stopRenewing = keepRenewing(() => renewWitnessLease(pipeline.pool, logId, name, attempt, LEASE_MS));
  try {
    const log = await getLog(pipeline.pool, logId);
    const isDone = log.frozenAt === null && (await ask(pipeline, configured, log, attempt, state));
    if (!isDone) await releaseWitness(pipeline.pool, logId, name, attempt);
    return log.frozenAt === null ? DONE : { type: 'giveUp', reason: `log ${log.origin} is frozen` };
  } finally {
    await stopRenewing();
  }
}

async function findState(
  pipeline: LogPipeline,
  logId: number,
  name: string,
): Promise<WitnessState | undefined> {
  return (await listWitnessStates(pipeline.pool, logId)).find((state) => state.witness === name);
}

/**
 * The request itself, outside any transaction; the checkpoint is read after the lease, so it is the newest.
 *
 * @returns false when the worker stops and what became of the request is not known
 */
async function ask(
  pipeline: LogPipeline,
  configured: ConfiguredWitness,
  log: Log,
  attempt: number,
  state: WitnessState,
): Promise<boolean> {
  const batch = await getNewestPublishedBatch(pipeline, log);
  const { witness: asked, kind, everyMs } = configured;
  const checkpoint = {
    origin: log.origin,
    treeSize: batch.treeSize,
    rootHash: Buffer.from(batch.rootHash).toString('hex'),
    body: batchCheckpointBody(log, batch),
    note: batch.note,
  };
  let said: WitnessEvidence;
  const slow = setTimeout(() => {
    const detail = { origin: log.origin, witness: asked.name, treeSize: batch.treeSize, attempt };
    pipeline.log.warn(detail, `the witness has not answered for ${SLOW_MS / 1000} s`);
  }, SLOW_MS).unref();
  try {
    said = await withTimeout(pipeline, (signal) => asked.ask(checkpoint, signal));
  } catch (error) {
    if (pipeline.aborting.aborted) return false;
    await recordFailure(pipeline, log, asked.name, attempt, state.failures, error);
    return true;
  } finally {
    clearTimeout(slow);
  }
  const landed = { logId: log.id, witness: asked.name, treeSize: batch.treeSize, kind, ...said };
  // It may have cost money: it is not thrown away because the database is away.
  await retryWhileUnavailable(() => recordEvidence(pipeline.pool, attempt, landed, everyMs));
  pipeline.send(settleJob(log.id));
  if (state.failures > 0) await endBackoff(pipeline.pool, namesOfKind(pipeline, kind));
  return true;
}

/** What kept one of a kind from answering may have kept the others: our own network, above all. */
function namesOfKind({ witnesses }: LogPipeline, kind: number): string[] {
  return witnesses.filter((other) => other.kind === kind).map((other) => other.witness.name);
}

/** The bytes every witness vouches for, of a stored batch. */
function batchCheckpointBody(log: Log, batch: BatchRow): Uint8Array {
  return Buffer.from(checkpointBody({ origin: log.origin, size: batch.treeSize, rootHash: batch.rootHash }));
}

async function getNewestPublishedBatch(pipeline: LogPipeline, log: Log): Promise<BatchRow> {
  const batch = await findNewestPublishedBatch(pipeline.pool, log.id);
  if (batch === undefined) throw new Error(`log ${log.origin} has no published batch`);
  return batch;
}

async function withTimeout<T>(
  { settings, aborting }: LogPipeline,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { witnessTimeoutMs } = settings;
  const controller = new AbortController();
  const { signal } = controller;
  const aborted = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason));
  });
  const late = () => controller.abort(new Error(`no answer within ${witnessTimeoutMs} ms`));
  const stop = () => controller.abort(new Error('the worker stops'));
  const timer = setTimeout(late, witnessTimeoutMs).unref();
  aborting.addEventListener('abort', stop);
  if (aborting.aborted) stop();
  try {
    return await Promise.race([run(signal), aborted]);
  } finally {
    clearTimeout(timer);
    aborting.removeEventListener('abort', stop);
  }
}

async function recordFailure(
  pipeline: LogPipeline,
  log: Log,
  name: string,
  attempt: number,
  failures: number,
  error: unknown,
): Promise<void> {
  const message = error instanceof Error ? error.message : String(error);
  const random = pipeline.random();
  const retryAfterMs = await recordWitnessFailure(pipeline.pool, {
    logId: log.id,
    witness: name,
    attempt,
    error: message,
    backoffMs: backoffMs(failures, false, random),
    backoffAfterDeadlineMs: backoffMs(failures, true, random),
  });
  pipeline.log.warn(
    { origin: log.origin, witness: name, attempt, retryAfterMs, reason: message },
    'the witness did not vouch',
  );
  pipeline.send(settleJob(log.id));
}

/**
 * 1 s doubling to 30 s, hourly once the newest batch's deadline has passed, each less up to a fifth at random.
 *
 * @param failures how many attempts failed in a row before this one
 * @param random in [0, 1)
 */
export function backoffMs(failures: number, afterDeadline: boolean, random: number): number {
  const longest = afterDeadline ? AFTER_DEADLINE_BACKOFF_MS : LAST_BACKOFF_MS;
  const base = afterDeadline ? longest : Math.min(longest, FIRST_BACKOFF_MS * 2 ** Math.min(failures, 20));
  return Math.round(base * (1 - random / 5));
}
