import { BatchStatus } from '../../../../gen/attestation/v1/batches_pb.js';
import type { Sql } from '../../database/connect.js';

const { SEALED, WITNESSED, PARTIAL, FAILED } = BatchStatus;

/** A change of a batch's status. */
export type Transition = {
  batchId: string;
  treeSize: number;
  status: number;
  origin: string;
  /** Seconds since its first submission was taken, if the batch had not been settled before. */
  firstAfterSeconds: number | null;
};

/**
 * Moves every published batch of a log whose policy is met to witnessed, at most `limit` a call, and records each
 * transition, in one statement: all required witnesses and enough of each quorum cover it. The witness `log` needs no
 * evidence: it covers what is published. Reads only the batches that it moves: of each policy those up to the covered
 * size.
 */
export async function settleWitnessed(sql: Sql, logId: number, limit: number): Promise<Transition[]> {
  return sql<Transition[]>`
    WITH needed AS MATERIALIZED (${neededWitnesses(sql, logId)}),
    need AS MATERIALIZED (
      SELECT version, coalesce((array_agg(covers ORDER BY covers DESC))[threshold], 0) AS covers
      FROM needed GROUP BY version, need, threshold),
    covered AS MATERIALIZED (
      SELECT p.version, coalesce(min(n.covers), ${Number.MAX_SAFE_INTEGER}) AS size
      FROM log l JOIN policy p ON p.environment = l.environment LEFT JOIN need n ON n.version = p.version
      WHERE l.id = ${logId} GROUP BY p.version),
    due AS (
      SELECT b.tree_size, b.status AS before FROM covered c CROSS JOIN LATERAL (
        SELECT b.tree_size, b.status FROM batch b
        WHERE b.log_id = ${logId} AND b.policy_version = c.version AND b.status <> ${WITNESSED}
          AND b.tree_size <= c.size AND b.registered_at IS NOT NULL
        ORDER BY b.tree_size LIMIT ${limit} FOR UPDATE OF b SKIP LOCKED) b
      LIMIT ${limit}),
    moved AS (
      UPDATE batch b SET status = ${WITNESSED}, witnessed_at = clock_timestamp() FROM due
      WHERE b.log_id = ${logId} AND b.tree_size = due.tree_size AND b.status <> ${WITNESSED}
      RETURNING b.tree_size, b.id, b.first_index, due.before),
    recorded AS (
      INSERT INTO batch_transition (log_id, tree_size, status)
      SELECT ${logId}, tree_size, ${WITNESSED} FROM moved ON CONFLICT DO NOTHING)
    SELECT id AS "batchId", tree_size AS "treeSize", ${WITNESSED}::smallint AS status, ${originOf(sql, logId)},
           CASE WHEN before = ${SEALED} THEN ${ageOfFirst(sql, logId)} END AS "firstAfterSeconds" FROM moved`;
}

/**
 * Moves sealed batches whose deadline has passed to partial if some needed witness covers them, else to failed. Only if
 * so many missing witnesses failed near the deadline or later that the policy could not be met: an outage of the service
 * itself fails no batch. A witness that the newest policy does not name counts as failed: it gets no more requests. The
 * transition records which needed witnesses had landed and which were missing; a quorum that is met misses none. In a
 * frozen log nothing fails until a later epoch ends it: a
 * newer copy of the database with more evidence may replace this one. An ended log makes no more requests.
 */
export async function settleOverdue(sql: Sql, logId: number, limit: number): Promise<Transition[]> {
  return sql<Transition[]>`
    WITH needed AS MATERIALIZED (${neededWitnesses(sql, logId)}),
    failing AS MATERIALIZED (
      SELECT version, max(failed_at) + ${NEAR_DEADLINE}::interval AS until FROM needed GROUP BY version),
    due AS (
      SELECT b.tree_size, needs.landed, needs.missing,
             CASE WHEN needs.landed = '{}' THEN ${FAILED}::smallint ELSE ${PARTIAL}::smallint END AS status
      FROM batch b
      JOIN failing f ON f.version = b.policy_version AND b.deadline_at <= f.until
      CROSS JOIN LATERAL (${needsOfBatch(sql)}) needs
      WHERE b.log_id = ${logId} AND b.status = ${SEALED} AND b.registered_at IS NOT NULL
        AND b.deadline_at < clock_timestamp() AND needs.has_failed
      ORDER BY b.tree_size LIMIT ${limit} FOR UPDATE OF b SKIP LOCKED),
    moved AS (
      UPDATE batch b SET status = due.status FROM due
      WHERE b.log_id = ${logId} AND b.tree_size = due.tree_size AND b.status = ${SEALED}
      RETURNING b.tree_size, b.id, b.first_index, b.status, due.landed, due.missing),
    recorded AS (
      INSERT INTO batch_transition (log_id, tree_size, status, landed, missing)
      SELECT ${logId}, tree_size, status, landed, missing FROM moved ON CONFLICT DO NOTHING)
    SELECT id AS "batchId", tree_size AS "treeSize", status, ${originOf(sql, logId)},
           ${ageOfFirst(sql, logId)} AS "firstAfterSeconds" FROM moved`;
}

function originOf(sql: Sql, logId: number) {
  return sql`(SELECT origin FROM log WHERE id = ${logId})`;
}

/** The seconds since the first submission of the batch that was moved. */
function ageOfFirst(sql: Sql, logId: number) {
  return sql`(SELECT extract(epoch FROM clock_timestamp() - s.submitted_at)::float8 FROM submission s
              WHERE s.log_id = ${logId} AND s.log_index = moved.first_index)`;
}

const NEAR_DEADLINE = '10 minutes';

/**
 * The witnesses that the batch `b` needs: those that cover it, those missing for a need that is not met, and whether
 * every such need has failed: too few of its witnesses are left that did not fail near the deadline.
 */
function needsOfBatch(sql: Sql) {
  return sql`
    SELECT coalesce(array_agg(DISTINCT w) FILTER (WHERE w = ANY (n.landed)), '{}') AS landed,
           array_agg(DISTINCT w) FILTER (WHERE w = ANY (n.missing) AND NOT n.met) AS missing,
           bool_and(n.failed) FILTER (WHERE NOT n.met) AS has_failed
    FROM (
      SELECT landed, missing, cardinality(landed) >= threshold AS met, members - failed < threshold AS failed
      FROM (
        SELECT r.threshold, count(*) AS members,
               coalesce(array_agg(r.witness) FILTER (WHERE r.covers >= b.tree_size), '{}') AS landed,
               coalesce(array_agg(r.witness) FILTER (WHERE r.covers < b.tree_size), '{}') AS missing,
               count(*) FILTER (WHERE r.covers < b.tree_size AND r.failed_at
                 >= greatest(b.sealed_at, b.deadline_at - ${NEAR_DEADLINE}::interval)) AS failed
        FROM needed r WHERE r.version = b.policy_version GROUP BY r.need, r.threshold) counted
    ) n CROSS JOIN LATERAL unnest(n.landed || n.missing) w`;
}

/** The needed witnesses of each policy of the log's environment: the size that each covers, and its last failure. */
function neededWitnesses(sql: Sql, logId: number) {
  return sql`
    SELECT p.version, r.need, r.threshold, r.witness,
      coalesce((SELECT max(e.tree_size) FROM evidence e WHERE e.log_id = l.id AND e.witness = r.witness), 0) AS covers,
      CASE WHEN l.ended_at IS NOT NULL THEN 'infinity'
           WHEN l.frozen_at IS NOT NULL THEN '-infinity'
           WHEN newest.witnesses @> jsonb_build_array(jsonb_build_object('name', r.witness))
           THEN coalesce(w.last_failed_at, '-infinity') ELSE 'infinity' END AS failed_at
    FROM log l
    JOIN policy p ON p.environment = l.environment
    CROSS JOIN LATERAL (
      SELECT n.witnesses FROM policy n WHERE n.environment = l.environment ORDER BY n.version DESC LIMIT 1) newest
    CROSS JOIN LATERAL witness_need(p) r
    LEFT JOIN witness_state w ON w.log_id = l.id AND w.witness = r.witness
    WHERE l.id = ${logId}`;
}
