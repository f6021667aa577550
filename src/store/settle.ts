import { BatchStatus } from '../../gen/attestation/v1/batches_pb.js';
import type { Sql } from './connect.js';

const { SEALED, WITNESSED, PARTIAL, FAILED } = BatchStatus;

/** A change of a batch's status. */
export type Transition = { batchId: string; treeSize: number; status: number };

/**
 * Moves every published batch of a log whose required witnesses all cover it to witnessed, at most `limit` a call,
 * and records each transition, all in one statement. A witness named `log` needs no evidence: publishing is its
 * vouching.
 */
export async function settleWitnessed(sql: Sql, logId: number, limit: number): Promise<Transition[]> {
  return sql<Transition[]>`
    WITH due AS (
      SELECT b.tree_size FROM batch b
      JOIN log l ON l.id = b.log_id
      JOIN policy p ON p.environment = l.environment AND p.version = b.policy_version
      WHERE b.log_id = ${logId} AND b.status <> ${WITNESSED} AND b.registered_at IS NOT NULL
        AND NOT EXISTS (SELECT FROM required_witness(p) r WHERE NOT covered(b.log_id, r, b.tree_size))
      ORDER BY b.tree_size LIMIT ${limit} FOR UPDATE OF b SKIP LOCKED),
    moved AS (
      UPDATE batch b SET status = ${WITNESSED}, witnessed_at = clock_timestamp() FROM due
      WHERE b.log_id = ${logId} AND b.tree_size = due.tree_size AND b.status <> ${WITNESSED}
      RETURNING b.tree_size, b.id),
    recorded AS (
      INSERT INTO batch_transition (log_id, tree_size, status)
      SELECT ${logId}, tree_size, ${WITNESSED} FROM moved ON CONFLICT DO NOTHING)
    SELECT id AS "batchId", tree_size AS "treeSize", ${WITNESSED}::smallint AS status FROM moved`;
}

/**
 * Moves sealed batches whose deadline has passed to partial, when some required witness covers them, or failed. Only
 * where every witness that is missing failed near the deadline or later: an outage of our own fails nothing. The
 * transition keeps which required witnesses had landed and which were missing.
 */
export async function settleOverdue(sql: Sql, logId: number, limit: number): Promise<Transition[]> {
  return sql<Transition[]>`
    WITH due AS (
      SELECT b.tree_size,
             CASE WHEN EXISTS (SELECT FROM required_witness(p) r WHERE covered(b.log_id, r, b.tree_size))
                  THEN ${PARTIAL}::smallint ELSE ${FAILED}::smallint END AS status,
             ARRAY(SELECT r FROM required_witness(p) r WHERE covered(b.log_id, r, b.tree_size)) AS landed,
             ARRAY(SELECT r FROM required_witness(p) r WHERE NOT covered(b.log_id, r, b.tree_size)) AS missing
      FROM batch b
      JOIN log l ON l.id = b.log_id
      JOIN policy p ON p.environment = l.environment AND p.version = b.policy_version
      WHERE b.log_id = ${logId} AND b.status = ${SEALED} AND b.registered_at IS NOT NULL
        AND b.deadline_at < clock_timestamp()
        AND NOT EXISTS (
          SELECT FROM required_witness(p) r
          LEFT JOIN witness_state w ON w.log_id = b.log_id AND w.witness = r
          WHERE NOT covered(b.log_id, r, b.tree_size)
            AND (w.last_failed_at IS NULL
                 OR w.last_failed_at < greatest(b.sealed_at, b.deadline_at - interval '10 minutes')))
        AND EXISTS (SELECT FROM required_witness(p) r WHERE NOT covered(b.log_id, r, b.tree_size))
      ORDER BY b.tree_size LIMIT ${limit} FOR UPDATE OF b SKIP LOCKED),
    moved AS (
      UPDATE batch b SET status = due.status FROM due
      WHERE b.log_id = ${logId} AND b.tree_size = due.tree_size AND b.status = ${SEALED}
      RETURNING b.tree_size, b.id, b.status, due.landed, due.missing),
    recorded AS (
      INSERT INTO batch_transition (log_id, tree_size, status, landed, missing)
      SELECT ${logId}, tree_size, status, landed, missing FROM moved ON CONFLICT DO NOTHING)
    SELECT id AS "batchId", tree_size AS "treeSize", status FROM moved`;
}
