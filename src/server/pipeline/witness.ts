/**
 * Consumes: a published checkpoint that a witness has not vouched for.
 * Commit point: the transaction that stores the evidence under (log, witness, tree size).
 * Emits: a settle job. The time of the next attempt is in the tables, where the reconciler finds it.
 * A crash leaves: a lease that expires within seconds; then another worker retries.
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

/** A request that takes longer is logged. */
const SLOW_MS = 5_000;
const FIRST_BACKOFF_MS = 1_000;
/** Maximum backoff of a failing witness while a batch within its deadline waits for it. */
export const LAST_BACKOFF_MS = 30_000;
const AFTER_DEADLINE_BACKOFF_MS = 60 * 60_000;

/** Asks one witness to vouch for the newest published checkpoint, unless it already has or is not due. */
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
 * Sends the request, outside any transaction. Reads the checkpoint after the lease, so that it is the newest.
 *
 * @returns false if the worker shut down before the outcome was known
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
  // The evidence may have cost money: storing it is retried while the database is unavailable.
  await retryWhileUnavailable(() => recordEvidence(pipeline.pool, attempt, landed, everyMs));
  pipeline.send(settleJob(log.id));
  if (state.failures > 0) await endBackoff(pipeline.pool, namesOfKind(pipeline, kind));
  return true;
}

/** Witnesses of one kind often fail for one reason, such as our own network, so they recover together. */
function namesOfKind({ witnesses }: LogPipeline, kind: number): string[] {
  return witnesses.filter((other) => other.kind === kind).map((other) => other.witness.name);
}

/** The checkpoint bytes of a batch that every witness vouches for. */
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
 * Exponential backoff from 1 s to 30 s, one hour after the newest batch's deadline; jitter subtracts up to a fifth.
 *
 * @param failures consecutive failures before this one
 * @param random in [0, 1)
 */
export function backoffMs(failures: number, afterDeadline: boolean, random: number): number {
  const longest = afterDeadline ? AFTER_DEADLINE_BACKOFF_MS : LAST_BACKOFF_MS;
  const base = afterDeadline ? longest : Math.min(longest, FIRST_BACKOFF_MS * 2 ** Math.min(failures, 20));
  return Math.round(base * (1 - random / 5));
}
