import type { JsonObject } from '@bufbuild/protobuf';
import type { Pool, Sql } from '../../database/connect.js';
import type { WitnessError } from './error-class.js';

/** A request that a witness has accepted, leased by this process. `attempt` is the fencing token. */
export type LeasedRequest = {
  logId: number;
  witness: string;
  treeSize: number;
  state: Uint8Array;
  detail: JsonObject;
  /** Since the witness accepted it. */
  ageMs: number;
  attempt: number;
  failures: number;
};

type RequestKey = { logId: number; witness: string; treeSize: number };

/** A pending answer: the state to continue from, the detail to show, and the time to continue. */
type PendingState = { state: Uint8Array; detail: JsonObject; pollAfterMs: number };

/**
 * Stores a request that the witness has accepted and ends the lease, in one transaction. The request is stored even if
 * the lease has expired, except an exclusive one if the witness has another.
 */
export async function recordRequest(
  pool: Pool,
  attempt: number,
  request: RequestKey & PendingState & { isExclusive: boolean },
  nextAfterMs: number,
): Promise<void> {
  const { logId, witness, treeSize } = request;
  await pool.begin(async (tx) => {
    const stored = await tx`
      INSERT INTO witness_request
        (log_id, witness, tree_size, state, detail, is_exclusive, requested_at, next_poll_at)
      VALUES (${logId}, ${witness}, ${treeSize}, ${request.state}, ${tx.json(request.detail)}, ${request.isExclusive},
              clock_timestamp(), clock_timestamp() + ${request.pollAfterMs}::bigint * interval '1 millisecond')
      ON CONFLICT DO NOTHING`;
    await tx`
      UPDATE witness_state SET
        requested_tree_size = CASE WHEN ${stored.count > 0}
          THEN greatest(requested_tree_size, ${treeSize}) ELSE requested_tree_size END,
        failures = CASE WHEN attempt = ${attempt} THEN 0 ELSE failures END,
        last_error = CASE WHEN attempt = ${attempt} THEN NULL ELSE last_error END,
        leased_until = CASE WHEN attempt = ${attempt} THEN NULL ELSE leased_until END,
        next_attempt_at = CASE WHEN attempt = ${attempt}
          THEN clock_timestamp() + ${nextAfterMs}::bigint * interval '1 millisecond' ELSE next_attempt_at END
      WHERE log_id = ${logId} AND witness = ${witness}`;
  });
}

/** Leases the request that is due for the longest time. Returns undefined if none is due. */
export async function leaseDueRequest(
  sql: Sql,
  logId: number,
  witness: string,
  leaseMs: number,
): Promise<LeasedRequest | undefined> {
  const [leased] = await sql<LeasedRequest[]>`
    WITH due AS (
      SELECT tree_size FROM witness_request
      WHERE log_id = ${logId} AND witness = ${witness} AND next_poll_at <= clock_timestamp()
        AND (leased_until IS NULL OR leased_until < clock_timestamp())
      ORDER BY next_poll_at LIMIT 1 FOR UPDATE SKIP LOCKED)
    UPDATE witness_request r
    SET attempt = attempt + 1, leased_until = clock_timestamp() + ${leaseMs}::bigint * interval '1 millisecond'
    FROM due WHERE r.log_id = ${logId} AND r.witness = ${witness} AND r.tree_size = due.tree_size
    RETURNING r.log_id AS "logId", r.witness, r.tree_size AS "treeSize", r.state, r.detail, r.attempt, r.failures,
      greatest(0, floor(extract(epoch FROM clock_timestamp() - r.requested_at) * 1000))::bigint AS "ageMs"`;
  return leased;
}

/** Renews the lease of an attempt, unless another attempt has begun. */
export async function renewRequestLease(
  sql: Sql,
  { logId, witness, treeSize, attempt }: LeasedRequest,
  leaseMs: number,
): Promise<void> {
  await sql`
    UPDATE witness_request SET leased_until = clock_timestamp() + ${leaseMs}::bigint * interval '1 millisecond'
    WHERE log_id = ${logId} AND witness = ${witness} AND tree_size = ${treeSize} AND attempt = ${attempt}
      AND leased_until IS NOT NULL`;
}

/** Ends a lease without a result. */
export async function releaseRequest(
  sql: Sql,
  { logId, witness, treeSize, attempt }: LeasedRequest,
): Promise<void> {
  await sql`
    UPDATE witness_request SET leased_until = NULL
    WHERE log_id = ${logId} AND witness = ${witness} AND tree_size = ${treeSize} AND attempt = ${attempt}`;
}

/**
 * Stores the new state of a request that stays pending, unless another attempt has begun.
 *
 * @returns whether it was stored
 */
export async function updateRequest(
  sql: Sql,
  leased: LeasedRequest,
  pending: PendingState,
): Promise<boolean> {
  const { logId, witness, treeSize, attempt } = leased;
  const stored = await sql`
    UPDATE witness_request SET
      state = ${pending.state}, detail = ${sql.json(pending.detail)}, failures = 0, last_error = NULL, leased_until = NULL,
      next_poll_at = clock_timestamp() + ${pending.pollAfterMs}::bigint * interval '1 millisecond'
    WHERE log_id = ${logId} AND witness = ${witness} AND tree_size = ${treeSize} AND attempt = ${attempt}`;
  return stored.count > 0;
}

/** Records a failed poll and ends its lease. The state stays. */
export async function recordRequestFailure(
  sql: Sql,
  { logId, witness, treeSize, attempt }: LeasedRequest,
  { reason, errorClass }: WitnessError,
  backoffMs: number,
): Promise<void> {
  await sql`
    UPDATE witness_request SET
      failures = failures + 1, last_error = ${reason.slice(0, 500)}, last_error_class = ${errorClass}, leased_until = NULL,
      next_poll_at = clock_timestamp() + ${backoffMs}::bigint * interval '1 millisecond'
    WHERE log_id = ${logId} AND witness = ${witness} AND tree_size = ${treeSize} AND attempt = ${attempt}`;
}

/**
 * Deletes a request that will never be fulfilled, unless another attempt has begun, so that the witness is asked anew
 * after `backoffMs`. Counts as a failure of the witness.
 */
export async function abandonRequest(
  pool: Pool,
  { logId, witness, treeSize, attempt }: LeasedRequest,
  reason: string,
  backoffMs: number,
): Promise<void> {
  await pool.begin(async (tx) => {
    const deleted = await tx`
      DELETE FROM witness_request
      WHERE log_id = ${logId} AND witness = ${witness} AND tree_size = ${treeSize} AND attempt = ${attempt}`;
    if (deleted.count === 0) return;
    await tx`
      UPDATE witness_state SET
        requested_tree_size = coalesce((
          SELECT max(tree_size) FROM witness_request WHERE log_id = ${logId} AND witness = ${witness}), 0),
        failures = failures + 1, last_failed_at = clock_timestamp(), last_error = ${reason.slice(0, 500)},
        last_error_class = 'other',
        next_attempt_at = clock_timestamp() + ${backoffMs}::bigint * interval '1 millisecond'
      WHERE log_id = ${logId} AND witness = ${witness}`;
  });
}

/** A pending request as shown: without its state. */
export type RequestStatus = RequestKey & {
  detail: JsonObject;
  requestedAt: Date;
  nextPollAt: Date;
  lastError: string | null;
  /** A WitnessErrorClass; null also of an error that an earlier release recorded. */
  lastErrorClass: string | null;
};

/** Lists the pending requests of a log, the smallest size first. */
export async function listRequests(sql: Sql, logId: number): Promise<RequestStatus[]> {
  return sql<RequestStatus[]>`
    SELECT log_id AS "logId", witness, tree_size AS "treeSize", detail, requested_at AS "requestedAt",
           next_poll_at AS "nextPollAt", last_error AS "lastError", last_error_class AS "lastErrorClass"
    FROM witness_request WHERE log_id = ${logId} ORDER BY tree_size, witness`;
}
