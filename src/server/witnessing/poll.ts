/** Continues the requests that a witness has accepted, until their evidence lands. */
import { checkpointBody } from '../../proof/log/checkpoint.js';
import { retryWhileUnavailable } from '../database/database-errors.js';
import { settleJob } from '../jobs/job.js';
import { keepRenewing, LEASE_MS } from '../jobs/lease.js';
import { findBatchesBySize } from '../log/store/batches.js';
import { getLog } from '../log/store/logs.js';
import { witnessErrorOf } from './alarm.js';
import { pollBackoffMs } from './backoff.js';
import { callWitness } from './call-witness.js';
import type { CheckpointToWitness, PollAnswer } from './clients/witness.js';
import {
  abandonRequest,
  type LeasedRequest,
  leaseDueRequest,
  recordRequestFailure,
  releaseRequest,
  renewRequestLease,
  updateRequest,
} from './store/witness-requests.js';
import { recordLateEvidence } from './store/witnesses.js';
import type { ConfiguredWitness, WitnessStage } from './witness-stage.js';

/** Polls every due request of a witness about one log, one after the other. */
export async function pollRequests(
  pipeline: WitnessStage,
  configured: ConfiguredWitness,
  logId: number,
): Promise<void> {
  while (!pipeline.aborting.aborted) {
    const leased = await leaseDueRequest(pipeline.pool, logId, configured.witness.name, LEASE_MS);
    if (leased === undefined) return;
    const stopRenewing = keepRenewing(() => renewRequestLease(pipeline.localPool, leased, LEASE_MS));
    try {
      await pollLeased(pipeline, configured, leased);
    } finally {
      await stopRenewing();
    }
  }
}

/** Continues one request. The lease ends with its outcome. */
async function pollLeased(
  pipeline: WitnessStage,
  { witness, kind }: ConfiguredWitness,
  leased: LeasedRequest,
): Promise<void> {
  const { pool, log } = pipeline;
  const { logId, treeSize, state, detail, ageMs, attempt } = leased;
  const checkpoint = await readCheckpoint(pipeline, logId, treeSize);
  const call = { origin: checkpoint.origin, witness: witness.name, treeSize, attempt };
  let answer: PollAnswer;
  try {
    if (witness.poll === undefined)
      throw new Error(`witnesses of kind ${witness.kind} have no pending requests`);
    const { poll } = witness;
    answer = await callWitness(pipeline, call, (signal) =>
      poll({ checkpoint, state, detail, ageMs }, signal),
    );
  } catch (error) {
    if (pipeline.aborting.aborted) return releaseRequest(pool, leased);
    const failure = witnessErrorOf(error);
    const { reason } = failure;
    const retryAfterMs = pollBackoffMs(leased.failures, pipeline.random());
    await recordRequestFailure(pool, leased, failure, retryAfterMs);
    log.warn({ ...call, retryAfterMs, reason }, 'a pending request to the witness failed');
    return;
  }
  // The answer may be of a paid request: storing it is retried while the database is unavailable.
  if (answer.type === 'pending') {
    const { type: _, ...pending } = answer;
    await retryWhileUnavailable(() => updateRequest(pool, leased, pending));
    return;
  }
  if (answer.type === 'abandoned') {
    const { reason } = answer;
    log.warn({ ...call, reason }, 'a pending request to the witness was abandoned');
    await abandonRequest(pool, leased, reason, pollBackoffMs(leased.failures, pipeline.random()));
    return;
  }
  const { evidence, detail: landedDetail } = answer;
  const landed = { logId, witness: witness.name, treeSize, kind, evidence, detail: landedDetail };
  await retryWhileUnavailable(() => recordLateEvidence(pool, landed));
  pipeline.send(settleJob(logId));
}

async function readCheckpoint(
  { pool }: WitnessStage,
  logId: number,
  treeSize: number,
): Promise<CheckpointToWitness> {
  const [{ origin }, [batch]] = await Promise.all([
    getLog(pool, logId),
    findBatchesBySize(pool, [{ logId, treeSize }]),
  ]);
  if (batch === undefined) throw new Error(`log ${origin} has no batch that ends at ${treeSize}`);
  const { rootHash } = batch;
  return {
    origin,
    treeSize,
    rootHash: Buffer.from(rootHash).toString('hex'),
    body: Buffer.from(checkpointBody({ origin, size: treeSize, rootHash })),
  };
}
