/** Refusals of witnesses that contradict our log: it has a second history, or the database lost leaves. */
import type { Sql } from '../../store/database/connect.js';
import { findNewestBatch } from '../../store/log/batches.js';
import { WitnessRequestError } from '../../witness/bounded-request.js';
import { reasonOf } from './call-witness.js';

/** Why a witness did not vouch, and whether that contradicts our log. */
type Failure = { reason: string; isAlarm: boolean };

/**
 * Judges the error of a request about a log. A size beyond the checkpoint that was sent contradicts the log only if it is
 * beyond the newest sealed one too: a witness that is also the register has that first.
 */
export async function judgeFailure(sql: Sql, logId: number, error: unknown): Promise<Failure> {
  const reason = reasonOf(error);
  if (!(error instanceof WitnessRequestError)) return { reason, isAlarm: false };
  if (error.code !== 'larger_log') return { reason, isAlarm: error.code === 'inconsistent' };
  const newest = await findNewestBatch(sql, logId);
  if ((error.knownSize ?? 0) <= (newest?.treeSize ?? 0)) return { reason, isAlarm: false };
  const cause = "the database lost leaves, or someone else signs with the log's key";
  return { reason: `ALARM: ${reason}: ${cause}`, isAlarm: true };
}
