/** Why witnesses did not vouch, and refusals that contradict our log: it has a second history, or the database lost leaves. */
import type { Sql } from '../database/connect.js';
import { findNewestBatch } from '../log/store/batches.js';
import { reasonOf } from './call-witness.js';
import { WitnessRequestError } from './clients/bounded-request.js';
import type { WitnessError, WitnessErrorClass } from './store/error-class.js';

/** Why a witness did not vouch, and whether that contradicts our log. */
type Failure = WitnessError & { isAlarm: boolean };

const CLASSES: Readonly<Record<WitnessRequestError['code'], WitnessErrorClass>> = {
  timeout: 'unreachable',
  aborted: 'unreachable',
  network: 'unreachable',
  http_status: 'rejected',
  conflict: 'rejected',
  larger_log: 'rejected',
  inconsistent: 'contradiction',
  too_large: 'invalid',
  content_type: 'invalid',
  bad_answer: 'invalid',
  malformed: 'invalid',
};

/** Classifies the error of a request to a witness. */
export function witnessErrorOf(error: unknown): WitnessError {
  const errorClass = error instanceof WitnessRequestError ? CLASSES[error.code] : 'other';
  return { reason: reasonOf(error), errorClass };
}

/**
 * Judges the error of a request about a log. A size beyond the checkpoint that was sent contradicts the log only if it is
 * beyond the newest sealed one too: a witness that is also the register has that first.
 */
export async function judgeFailure(sql: Sql, logId: number, error: unknown): Promise<Failure> {
  const failure = witnessErrorOf(error);
  if (!(error instanceof WitnessRequestError)) return { ...failure, isAlarm: false };
  if (error.code !== 'larger_log') return { ...failure, isAlarm: error.code === 'inconsistent' };
  const newest = await findNewestBatch(sql, logId);
  if ((error.knownSize ?? 0) <= (newest?.treeSize ?? 0)) return { ...failure, isAlarm: false };
  const cause = "the database lost leaves, or someone else signs with the log's key";
  return {
    reason: `ALARM: ${failure.reason}: ${cause}`,
    errorClass: 'contradiction',
    isAlarm: true,
  };
}
