/**
 * Consumes: unsealed leaves of a log.
 * Commit point: the transaction that stores tiles, batch and signed checkpoint; published once its root is in the
 * register and the batch is marked so.
 * Emits: a witness job per witness, a settle job.
 * A crash leaves: no batch, or a whole one that the next run registers and publishes.
 */

import { signLogCheckpoint } from '../../proof/log/log-signature.js';
import type { Sql } from '../database/connect.js';
import { settleJob, witnessJob } from '../jobs/job.js';
import { SigningError } from '../keys/signing-error.js';
import { DONE, type Outcome, retryAfter } from '../queue/outcome.js';
import { extendLog } from './extend-log.js';
import type { LogStages } from './log-stages.js';
import { checkRegister, compareWithRegister, registerEntry } from './register/register.js';
import { type BatchRow, findDurableBatch, insertBatch, publishBatches } from './store/batches.js';
import { readGrowth } from './store/leaves.js';
import { getLog, type Log, LogLock } from './store/logs.js';

const ANOTHER_SEALER_MS = 200;
const REGISTER_MISSING_MS = 5_000;
const KEY_MISSING_MS = 2_000;
/** A sealer idle in its transaction for this long has stopped; hashing time is added. */
const SEALER_IDLE_MS = 2_000;
const HASHING_MS_PER_LEAF = 0.02;
/** Retries of the compare-and-swap after another process published; then the next run continues. */
const REGISTER_TRIES = 5;

/** Seals at most one batch of a log per call, no sooner than the batch interval after the last. */
export async function seal(pipeline: LogStages, logId: number): Promise<Outcome> {
  const log = await getLog(pipeline.pool, logId);
  if (log.frozenAt !== null)
    return { type: 'giveUp', reason: `log ${log.origin} is frozen: ${log.frozenReason}` };
  const sealed = await pipeline.pool
    .begin((tx) => sealNext(pipeline, tx, log))
    .catch((error: unknown) => retryIfUnsigned(pipeline, log, error));
  if (sealed === 'inconsistent') return reportInconsistent(pipeline, log);
  await publish(pipeline, log);
  return sealed;
}

/** Nothing is stored without a signature: a batch waits until the log's key can sign. */
function retryIfUnsigned(pipeline: LogStages, { origin }: Log, error: unknown): Outcome {
  if (!(error instanceof SigningError)) throw error;
  pipeline.log.error({ origin, reason: error.message }, "nothing is sealed without the log's key");
  return retryAfter(KEY_MISSING_MS);
}

/** Compares the log with the register once more, outside of the transaction, and freezes it if they contradict each other. */
async function reportInconsistent(pipeline: LogStages, log: Log): Promise<Outcome> {
  const comparison = await checkRegister(pipeline, log);
  if (comparison.state === 'fork') return { type: 'giveUp', reason: comparison.reason };
  if (comparison.state !== 'missing') return retryAfter(ANOTHER_SEALER_MS);
  const { reason } = comparison;
  pipeline.log.error({ origin: log.origin, reason }, 'nothing is sealed without the checkpoint register');
  return retryAfter(REGISTER_MISSING_MS);
}

/**
 * Extends the log's tiles to its current size and stores the batch and its checkpoint. Does nothing unless the database
 * that this transaction runs on agrees with the register. If it lacks batches that were published, as a promoted standby
 * may, the published size is sealed again: its leaves give the published root.
 */
async function sealNext(pipeline: LogStages, tx: Sql, log: Log): Promise<Outcome | 'inconsistent'> {
  const { batchMaxLeaves } = pipeline.settings;
  const idleMs = Math.ceil(SEALER_IDLE_MS + batchMaxLeaves * HASHING_MS_PER_LEAF);
  const [lock] = await tx<{ held: boolean }[]>`
    SELECT set_config('idle_in_transaction_session_timeout', ${String(idleMs)}, true),
           pg_try_advisory_xact_lock(${LogLock.SEAL}, ${log.id}) AS held`;
  if (!lock?.held) return retryAfter(ANOTHER_SEALER_MS);
  const comparison = await compareWithRegister(tx, pipeline.register, log);
  if (comparison.state !== 'consistent' && comparison.state !== 'behind') return 'inconsistent';
  const { newest } = comparison;
  const publishedSize = comparison.state === 'behind' ? comparison.entry.size : undefined;
  const firstIndex = newest?.treeSize ?? 0;
  const { logSize, ageMs } = await readGrowth(tx, log.id, firstIndex);
  const treeSize = publishedSize ?? Math.min(logSize, firstIndex + batchMaxLeaves);
  if (treeSize === firstIndex) return DONE;
  const waitMs = publishedSize === undefined ? msUntilDue(pipeline, ageMs) : 0;
  if (waitMs > 0 && treeSize - firstIndex < batchMaxLeaves) return retryAfter(waitMs);
  if (publishedSize !== undefined) warnOfLostBatches(pipeline, log, { publishedSize, firstIndex, logSize });

  const { rootHash, tiles } = await extendLog(tx, log, newest, treeSize);
  const note = await signLogCheckpoint(
    { origin: log.origin, size: treeSize, rootHash },
    pipeline.signerOf(log),
  );
  const { id: logId, environment } = log;
  await insertBatch(tx, {
    logId,
    environment,
    treeSize,
    id: pipeline.newBatchId(),
    firstIndex,
    rootHash,
    note,
    tiles,
  });
  return logSize > treeSize ? retryAfter(1) : DONE;
}

function warnOfLostBatches(
  pipeline: LogStages,
  { origin }: Log,
  { publishedSize, firstIndex, logSize }: Record<'publishedSize' | 'firstIndex' | 'logSize', number>,
): void {
  pipeline.log.warn(
    { origin, register: publishedSize, batches: firstIndex, leaves: logSize },
    'the database lacks batches that were published, and its leaves give the published root: sealing them again',
  );
}

/** Milliseconds until the batch interval ends, by the database's clock, which may step back. */
function msUntilDue({ settings }: LogStages, ageMs: number | null): number {
  return ageMs === null || ageMs < 0 ? 0 : settings.batchIntervalMs - ageMs;
}

/** Writes the newest batch's root to the register, publishes every batch up to it and triggers the witnesses. */
async function publish(pipeline: LogStages, log: Log): Promise<void> {
  const newest = await registerNewest(pipeline, log);
  if (newest === undefined || !(await publishBatches(pipeline.pool, newest))) return;
  for (const { witness, environments } of pipeline.witnesses) {
    if (environments.includes(log.environment)) pipeline.send(witnessJob(log.id, witness.name));
  }
  pipeline.send(settleJob(log.id));
}

/**
 * Replaces the register's entry with the newest batch, unless that batch is published. The replacement is a
 * compare-and-swap on the entry that the tables were compared with. It runs outside any transaction: a process that is
 * suspended here blocks no other and changes nothing when it resumes. If the entry has changed, compares again. A batch that
 * the synchronous standby may lack is not registered: a failover would leave the register ahead.
 *
 * @returns the batch once the register holds it
 */
async function registerNewest({ pool, register }: LogStages, log: Log): Promise<BatchRow | undefined> {
  for (let tries = 0; tries < REGISTER_TRIES; tries++) {
    const comparison = await compareWithRegister(pool, register, log);
    if (comparison.state !== 'consistent') return undefined;
    const { entry, newest } = comparison;
    if (newest === undefined || newest.registeredAt !== null) return undefined;
    if (!(await findDurableBatch(pool, newest))) continue;
    if (await register.replace(entry, registerEntry(pool, log, newest))) return newest;
  }
  return undefined;
}
