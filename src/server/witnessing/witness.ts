/**
 * Consumes: a published checkpoint that a witness has not vouched for; requests that a witness has accepted.
 * Commit point: the transaction that stores the evidence, or the accepted request, under (log, witness, tree size).
 * Emits: a settle job. The time of the next attempt is in the tables, where the reconciler finds it.
 * A crash leaves: a lease that expires within seconds; then another worker retries.
 */
import { checkpointBody } from '../../proof/log/checkpoint.js';
import { retryWhileUnavailable } from '../database/database-errors.js';
import { settleJob } from '../jobs/job.js';
import { keepRenewing, LEASE_MS } from '../jobs/lease.js';
import { proveConsistency } from '../log/prove-consistency.js';
import { type BatchRow, findNewestPublishedBatch } from '../log/store/batches.js';
import { getLog, type Log } from '../log/store/logs.js';
import { DONE, type Outcome } from '../queue/outcome.js';
import { judgeFailure } from './alarm.js';
import { backoffMs } from './backoff.js';
import { callWitness } from './call-witness.js';
import type { WitnessAnswer, WitnessedCheckpoint } from './clients/witness.js';
import { pollRequests } from './poll.js';
import {
  endBackoff,
  leaseWitness,
  recordWitnessFailure,
  releaseWitness,
  renewWitnessLease,
} from './store/witness-leases.js';
import { recordRequest } from './store/witness-requests.js';
import { listWitnessStates, recordEvidence, type WitnessState } from './store/witnesses.js';
import type { ConfiguredWitness, WitnessStage } from './witness-stage.js';

/** Asks one witness to vouch for the newest published checkpoint, unless it already has or is not due. */
export async function witness(pipeline: WitnessStage, logId: number, name: string): Promise<Outcome> {
  const configured = pipeline.witnesses.find((candidate) => candidate.witness.name === name);
  if (configured === undefined) return { type: 'giveUp', reason: `this worker has no witness named ${name}` };
  await pollRequests(pipeline, configured, logId);
  const outcome = await askIfDue(pipeline, configured, logId);
  await pollRequests(pipeline, configured, logId);
  return outcome;
}

/** Asks for the newest checkpoint, unless the witness covers it, has a request for it, or is not due. */
async function askIfDue(
  pipeline: WitnessStage,
  configured: ConfiguredWitness,
  logId: number,
): Promise<Outcome> {
  const { name } = configured.witness;
  const state = await findState(pipeline, logId, name);
  const newest = await findNewestPublishedBatch(pipeline.pool, logId);
  if (state === undefined || newest === undefined) return DONE;
  if (Math.max(state.coversTreeSize, state.requestedTreeSize) >= newest.treeSize) return DONE;
  const attempt = await leaseWitness(pipeline.pool, logId, name, LEASE_MS);
  if (attempt === undefined) return DONE;
  const stopRenewing = keepRenewing(() =>
    renewWitnessLease(pipeline.localPool, logId, name, attempt, LEASE_MS),
  );
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
  pipeline: WitnessStage,
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
  pipeline: WitnessStage,
  configured: ConfiguredWitness,
  log: Log,
  attempt: number,
  state: WitnessState,
): Promise<boolean> {
  const batch = await getNewestPublishedBatch(pipeline, log);
  const { witness: asked, kind, everyMs } = configured;
  const checkpoint = await checkpointToAsk(pipeline, log, batch, state);
  const call = { origin: log.origin, witness: asked.name, treeSize: batch.treeSize, attempt };
  let answer: WitnessAnswer;
  try {
    answer = await callWitness(pipeline, call, (signal) => asked.ask(checkpoint, signal));
  } catch (error) {
    if (pipeline.aborting.aborted) return false;
    await recordFailure(pipeline, log, asked.name, attempt, state.failures, error);
    return true;
  }
  const of = { logId: log.id, witness: asked.name, treeSize: batch.treeSize };
  // The answer may have cost money: storing it is retried while the database is unavailable.
  if (answer.type === 'pending') {
    const { type: _, ...pending } = answer;
    const request = { ...of, ...pending, isExclusive: asked.oneAtATime ?? false };
    await retryWhileUnavailable(() => recordRequest(pipeline.pool, attempt, request, everyMs));
  } else {
    const { evidence, detail } = answer;
    const landed = { ...of, kind, evidence, detail };
    await retryWhileUnavailable(() => recordEvidence(pipeline.pool, attempt, landed, everyMs));
    pipeline.send(settleJob(log.id));
  }
  if (state.failures > 0) await endBackoff(pipeline.pool, namesOfKind(pipeline, kind));
  return true;
}

/** Witnesses of one kind often fail for one reason, such as our own network, so they recover together. */
function namesOfKind({ witnesses }: WitnessStage, kind: number): string[] {
  return witnesses.filter((other) => other.kind === kind).map((other) => other.witness.name);
}

async function checkpointToAsk(
  { pool }: WitnessStage,
  { id: logId, origin }: Log,
  { treeSize, rootHash, note }: BatchRow,
  { coversTreeSize }: WitnessState,
): Promise<WitnessedCheckpoint> {
  return {
    origin,
    treeSize,
    rootHash: Buffer.from(rootHash).toString('hex'),
    body: Buffer.from(checkpointBody({ origin, size: treeSize, rootHash })),
    note,
    coveredSize: coversTreeSize,
    proveConsistency: (fromSize) => proveConsistency(pool, logId, fromSize, treeSize),
  };
}

async function getNewestPublishedBatch(pipeline: WitnessStage, log: Log): Promise<BatchRow> {
  const batch = await findNewestPublishedBatch(pipeline.pool, log.id);
  if (batch === undefined) throw new Error(`log ${log.origin} has no published batch`);
  return batch;
}

async function recordFailure(
  pipeline: WitnessStage,
  log: Log,
  name: string,
  attempt: number,
  failures: number,
  error: unknown,
): Promise<void> {
  const { reason, errorClass, isAlarm } = await judgeFailure(pipeline.pool, log.id, error);
  const random = pipeline.random();
  const retryAfterMs = await recordWitnessFailure(pipeline.pool, {
    logId: log.id,
    witness: name,
    attempt,
    error: { reason, errorClass },
    backoffMs: backoffMs(failures, false, random),
    backoffAfterDeadlineMs: backoffMs(failures, true, random),
  });
  const failure = { origin: log.origin, witness: name, attempt, retryAfterMs, reason };
  if (isAlarm) {
    pipeline.log.fatal(failure, 'ALARM: the witness contradicts the log');
    pipeline.observeAlarm(name);
  } else {
    pipeline.log.warn(failure, 'the witness did not vouch');
  }
  pipeline.send(settleJob(log.id));
}
