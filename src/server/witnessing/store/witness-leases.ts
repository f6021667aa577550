import type { Pool, Sql } from '../../database/connect.js';
import type { WitnessError } from './error-class.js';

/**
 * Leases the requests to a witness about a log, if due and not leased, and if the witness has no exclusive request.
 *
 * @returns the attempt's number, a fencing token, or undefined
 */
export async function leaseWitness(
  sql: Sql,
  logId: number,
  witness: string,
  leaseMs: number,
): Promise<number | undefined> {
  const rows = await sql<{ attempt: number }[]>`
    UPDATE witness_state
    SET attempt = attempt + 1, leased_until = clock_timestamp() + ${leaseMs}::bigint * interval '1 millisecond'
    WHERE log_id = ${logId} AND witness = ${witness} AND next_attempt_at <= clock_timestamp()
      AND (leased_until IS NULL OR leased_until < clock_timestamp())
      AND NOT EXISTS (SELECT FROM witness_request r WHERE r.witness = ${witness} AND r.is_exclusive)
    RETURNING attempt`;
  return rows[0]?.attempt;
}

/** Renews the lease of an attempt, unless it has ended or another attempt has begun. */
export async function renewWitnessLease(
  sql: Sql,
  logId: number,
  witness: string,
  attempt: number,
  leaseMs: number,
): Promise<void> {
  await sql`
    UPDATE witness_state SET leased_until = clock_timestamp() + ${leaseMs}::bigint * interval '1 millisecond'
    WHERE log_id = ${logId} AND witness = ${witness} AND attempt = ${attempt} AND leased_until IS NOT NULL`;
}

/** Ends a lease without recording an attempt. */
export async function releaseWitness(
  sql: Sql,
  logId: number,
  witness: string,
  attempt: number,
): Promise<void> {
  await sql`
    UPDATE witness_state SET leased_until = NULL
    WHERE log_id = ${logId} AND witness = ${witness} AND attempt = ${attempt}`;
}

/** A failed attempt, and the wait before the next one. */
type WitnessFailure = {
  logId: number;
  witness: string;
  attempt: number;
  error: WitnessError;
  /** While the newest published batch is within its deadline. The next attempt falls on the deadline at the latest. */
  backoffMs: number;
  /** Once that deadline has passed. */
  backoffAfterDeadlineMs: number;
};

/**
 * Records a failed attempt and the time of the next one, unless a newer attempt has begun. Locks first, so that a batch
 * published concurrently is either seen here or shortens the wait afterwards.
 *
 * @returns the milliseconds until the next attempt
 */
export async function recordWitnessFailure(pool: Pool, failed: WitnessFailure): Promise<number | undefined> {
  const { logId, witness, attempt } = failed;
  return pool.begin(async (tx) => {
    const held = await tx`
      SELECT FROM witness_state WHERE log_id = ${logId} AND witness = ${witness} AND attempt = ${attempt} FOR UPDATE`;
    if (held.count === 0) return undefined;
    const [next] = await tx<{ ms: number }[]>`
      WITH newest AS (
        SELECT extract(epoch FROM deadline_at - clock_timestamp()) * 1000 AS left_ms FROM batch
        WHERE log_id = ${logId} AND registered_at IS NOT NULL ORDER BY tree_size DESC LIMIT 1),
      next AS (
        SELECT ceil(CASE WHEN left_ms > 0 THEN least(${failed.backoffMs}, left_ms)
                    ELSE ${failed.backoffAfterDeadlineMs} END)::bigint AS ms FROM newest)
      UPDATE witness_state SET
        failures = failures + 1, last_failed_at = clock_timestamp(),
        last_error = ${failed.error.reason.slice(0, 500)}, last_error_class = ${failed.error.errorClass},
        leased_until = NULL, next_attempt_at = clock_timestamp() + next.ms * interval '1 millisecond'
      FROM next WHERE log_id = ${logId} AND witness = ${witness} RETURNING next.ms`;
    return next?.ms;
  });
}

/** Makes a witness and its pending requests due at once, for every log. */
export async function makeWitnessDue(sql: Sql, witness: string): Promise<void> {
  await sql`
    UPDATE witness_request SET next_poll_at = clock_timestamp()
    WHERE witness = ${witness} AND next_poll_at > clock_timestamp()`;
  await sql`
    UPDATE witness_state SET next_attempt_at = clock_timestamp()
    WHERE witness = ${witness} AND next_attempt_at > clock_timestamp()`;
}

/**
 * Makes those of these witnesses that are failing due at once, for every log. Skips locked rows, so that two callers
 * cannot deadlock.
 */
export async function endBackoff(sql: Sql, witnesses: readonly string[]): Promise<void> {
  await sql`
    UPDATE witness_state w SET next_attempt_at = clock_timestamp()
    FROM (SELECT log_id, witness FROM witness_state
          WHERE witness = ANY (${[...witnesses]}::text[]) AND failures > 0 AND next_attempt_at > clock_timestamp()
          FOR UPDATE SKIP LOCKED) failing
    WHERE w.log_id = failing.log_id AND w.witness = failing.witness`;
}
