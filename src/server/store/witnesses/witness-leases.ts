import type { Pool, Sql } from '../database/connect.js';

/**
 * Takes the lease to ask a witness about a log, when it is due and nobody else holds one.
 *
 * @returns the attempt's number, which fences what follows, or undefined
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
    RETURNING attempt`;
  return rows[0]?.attempt;
}

/** Extends the lease of an attempt that has not ended, unless another attempt has begun. */
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

/** Ends a lease without an attempt having been made. */
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

/** An attempt that failed, and how long to wait before the next one. */
export type WitnessFailure = {
  logId: number;
  witness: string;
  attempt: number;
  error: string;
  /** While the newest published batch is within its deadline. The next attempt falls on the deadline at the latest. */
  backoffMs: number;
  /** Once that deadline has passed. */
  backoffAfterDeadlineMs: number;
};

/**
 * Records that an attempt failed and when to try next; nothing when a newer attempt has begun. The lock comes first, so
 * that a batch published meanwhile is either seen here or hastens this witness afterwards.
 *
 * @returns in how many milliseconds it is tried next
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
        failures = failures + 1, last_failed_at = clock_timestamp(), last_error = ${failed.error.slice(0, 500)},
        leased_until = NULL, next_attempt_at = clock_timestamp() + next.ms * interval '1 millisecond'
      FROM next WHERE log_id = ${logId} AND witness = ${witness} RETURNING next.ms`;
    return next?.ms;
  });
}

/** Has witnesses that failed last asked again within `longestMs`: there is something new to ask about. */
export async function hastenFailingWitnesses(sql: Sql, logId: number, longestMs: number): Promise<void> {
  await sql`
    UPDATE witness_state SET next_attempt_at = clock_timestamp() + ${longestMs}::bigint * interval '1 millisecond'
    WHERE log_id = ${logId} AND failures > 0
      AND next_attempt_at > clock_timestamp() + ${longestMs}::bigint * interval '1 millisecond'`;
}

/** Has a witness asked at once, about every log. */
export async function askAtOnce(sql: Sql, witness: string): Promise<void> {
  await sql`
    UPDATE witness_state SET next_attempt_at = clock_timestamp()
    WHERE witness = ${witness} AND next_attempt_at > clock_timestamp()`;
}

/**
 * Has those of these witnesses that failed last asked at once, about every log. Rows that somebody is writing to are
 * passed over, so that two callers cannot wait for each other.
 */
export async function endBackoff(sql: Sql, witnesses: readonly string[]): Promise<void> {
  await sql`
    UPDATE witness_state w SET next_attempt_at = clock_timestamp()
    FROM (SELECT log_id, witness FROM witness_state
          WHERE witness = ANY (${[...witnesses]}::text[]) AND failures > 0 AND next_attempt_at > clock_timestamp()
          FOR UPDATE SKIP LOCKED) failing
    WHERE w.log_id = failing.log_id AND w.witness = failing.witness`;
}
