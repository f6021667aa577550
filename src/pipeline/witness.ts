/**
 * Consumes: a published checkpoint that a witness has not vouched for.
 * Commit point: the transaction that stores the evidence under (log, witness, tree size).
 * Emits: a settle job. When to ask again after a failure stands in the tables, where the reconciler finds it.
 * A crash leaves: a lease that runs out; then another worker asks again.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { checkpointBody } from '../proof/checkpoint.js';
import { DONE, type Outcome } from '../queue/outcome.js';
import { type BatchRow, findNewestPublishedBatch, isOverdue } from '../store/batches.js';
import { STORE_PATIENCE_MS, untilStored } from '../store/database-errors.js';
import { getLog, type Log } from '../store/logs.js';
import {
  leaseWitness,
  listWitnessStates,
  recordEvidence,
  recordWitnessFailure,
  releaseWitness,
  type WitnessState,
} from '../store/witnesses.js';
import type { WitnessEvidence } from '../witness/witness.js';
import { settleJob } from './job.js';
import type { ConfiguredWitness, LogPipeline } from './pipeline.js';

const FIRST_BACKOFF_MS = 1_000;
/** How long a witness that fails is left alone at most while a batch within its deadline waits for it. */
export const LAST_BACKOFF_MS = 10 * 60_000;
const AFTER_DEADLINE_BACKOFF_MS = 60 * 60_000;

/** Asks one witness about the newest published checkpoint of a log, unless it has vouched for it or is not due. */
export async function witness(pipeline: LogPipeline, logId: number, name: string): Promise<Outcome> {
  const configured = pipeline.witnesses.find((candidate) => candidate.witness.name === name);
  if (configured === undefined) return { type: 'giveUp', reason: `this worker has no witness named ${name}` };
  const state = await findState(pipeline, logId, name);
  const newest = await findNewestPublishedBatch(pipeline.pool, logId);
  if (state === undefined || newest === undefined || state.coversTreeSize >= newest.treeSize) return DONE;
  // Longer than the request by as long as recording what it brought is tried.
  const leaseMs = pipeline.settings.witnessTimeoutMs + STORE_PATIENCE_MS;
  const attempt = await leaseWitness(pipeline.pool, logId, name, leaseMs);
  if (attempt === undefined) return DONE;
  const log = await getLog(pipeline.pool, logId);
  if (log.frozenAt !== null) {
    await releaseWitness(pipeline.pool, logId, name, attempt);
    return { type: 'giveUp', reason: `log ${log.origin} is frozen` };
  }
  return ask(pipeline, configured, log, attempt, state);
}

async function findState(
  pipeline: LogPipeline,
  logId: number,
  name: string,
): Promise<WitnessState | undefined> {
  return (await listWitnessStates(pipeline.pool, logId)).find((state) => state.witness === name);
}

/** The request itself, outside any transaction; the checkpoint is read after the lease, so it is the newest. */
async function ask(
  pipeline: LogPipeline,
  configured: ConfiguredWitness,
  log: Log,
  attempt: number,
  state: WitnessState,
): Promise<Outcome> {
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
  try {
    said = await withTimeout(pipeline.settings.witnessTimeoutMs, (signal) => asked.ask(checkpoint, signal));
  } catch (error) {
    return failed(pipeline, log, asked.name, attempt, state.failures, batch, error);
  }
  const landed = { logId: log.id, witness: asked.name, treeSize: batch.treeSize, kind, ...said };
  // It may have cost money: it is not thrown away because the database is away.
  await untilStored(() => recordEvidence(pipeline.pool, attempt, landed, everyMs));
  pipeline.send(settleJob(log.id));
  return DONE;
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

async function withTimeout<T>(timeoutMs: number, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const done = new AbortController();
  const timeout = delay(timeoutMs, undefined, { signal: done.signal, ref: false }).then(() => {
    controller.abort(new Error(`no answer within ${timeoutMs} ms`));
    throw controller.signal.reason;
  });
  try {
    return await Promise.race([run(controller.signal), timeout]);
  } finally {
    done.abort();
    timeout.catch(() => {});
  }
}

async function failed(
  pipeline: LogPipeline,
  log: Log,
  name: string,
  attempt: number,
  failures: number,
  batch: BatchRow,
  error: unknown,
): Promise<Outcome> {
  const message = error instanceof Error ? error.message : String(error);
  const isLate = await isOverdue(pipeline.pool, batch);
  const retryAfterMs = backoffMs(failures, isLate, pipeline.random());
  pipeline.log.warn(
    { origin: log.origin, witness: name, attempt, retryAfterMs, reason: message },
    'the witness did not vouch',
  );
  await recordWitnessFailure(pipeline.pool, {
    logId: log.id,
    witness: name,
    attempt,
    error: message,
    retryAfterMs,
  });
  pipeline.send(settleJob(log.id));
  return DONE;
}

/**
 * 1 s doubling to 10 min, hourly once the newest batch's deadline has passed, each less up to a fifth at random.
 *
 * @param failures how many attempts failed in a row before this one
 * @param random in [0, 1)
 */
export function backoffMs(failures: number, afterDeadline: boolean, random: number): number {
  const longest = afterDeadline ? AFTER_DEADLINE_BACKOFF_MS : LAST_BACKOFF_MS;
  const base = afterDeadline ? longest : Math.min(longest, FIRST_BACKOFF_MS * 2 ** Math.min(failures, 20));
  return Math.round(base * (1 - random / 5));
}
