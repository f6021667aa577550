import type { Sql } from '../database/connect.js';

/** The jobs of a log that are due. */
type DueWork = { logId: number; seal: boolean; settle: boolean; witnesses: string[] };

/**
 * Finds all due jobs in the tables. `seal` ignores the batch interval. A frozen log is neither sealed nor witnessed,
 * but its published batches are settled by the evidence that exists or that pending requests lead to. Costs a few index look-ups per log.
 */
export async function findDueWork(sql: Sql): Promise<DueWork[]> {
  return sql<DueWork[]>`
    SELECT l.id AS "logId",
      l.frozen_at IS NULL AND (coalesce(leaves.size, 0) > coalesce(sealed.size, 0)
        OR coalesce(sealed.size, 0) > coalesce(published.size, 0)) AS seal,
      EXISTS (SELECT FROM batch b WHERE b.log_id = l.id AND b.status <> 2 AND b.registered_at IS NOT NULL) AS settle,
      ARRAY(SELECT w.witness FROM witness_state w
            WHERE w.log_id = l.id AND l.frozen_at IS NULL
              AND greatest(w.covers_tree_size, w.requested_tree_size) < published.size
              AND w.next_attempt_at <= clock_timestamp()
              AND (w.leased_until IS NULL OR w.leased_until < clock_timestamp())
              AND NOT EXISTS (SELECT FROM witness_request x WHERE x.witness = w.witness AND x.is_exclusive)
            UNION
            SELECT r.witness FROM witness_request r
            WHERE r.log_id = l.id AND r.next_poll_at <= clock_timestamp()
              AND (r.leased_until IS NULL OR r.leased_until < clock_timestamp())
            ORDER BY 1) AS witnesses
    FROM log l
    LEFT JOIN LATERAL (SELECT max(log_index) + 1 AS size FROM submission WHERE log_id = l.id) leaves ON true
    LEFT JOIN LATERAL (SELECT max(tree_size) AS size FROM batch WHERE log_id = l.id) sealed ON true
    LEFT JOIN LATERAL (SELECT tree_size AS size FROM batch WHERE log_id = l.id AND registered_at IS NOT NULL
                       ORDER BY tree_size DESC LIMIT 1) published ON true
    ORDER BY l.id`;
}

/**
 * The backlog of a log: unsealed leaves, leaves that the index of artifacts does not cover, batches not witnessed, those not published either, the age of the oldest of
 * them, and the age of the newest publication (null if there is none). Of an ended log nothing more is to come.
 */
export type Backlog = {
  origin: string;
  ended: boolean;
  frozen: boolean;
  sealed: number;
  unsealed: number;
  unindexed: number;
  unsettled: number;
  unpublished: number;
  oldestSeconds: number;
  publishedSeconds: number | null;
};

/** Reads the backlog of every log. Costs a few index look-ups per log, and one entry per unsettled batch. */
export async function readBacklogs(sql: Sql): Promise<Backlog[]> {
  return sql<Backlog[]>`
    SELECT l.origin, l.frozen_at IS NOT NULL AS frozen,
      l.ended_at IS NOT NULL AS ended,
      coalesce((SELECT max(tree_size) FROM batch WHERE log_id = l.id), 0) AS sealed,
      (greatest((SELECT max(log_index) + 1 FROM submission WHERE log_id = l.id), l.archived_size)
       - coalesce((SELECT max(tree_size) FROM batch WHERE log_id = l.id), 0))::bigint AS unsealed,
      greatest(0, coalesce((SELECT max(log_index) + 1 FROM submission WHERE log_id = l.id), 0)
       - coalesce((SELECT max(end_index) FROM artifact_run WHERE log_id = l.id AND is_current), 0))::bigint AS unindexed,
      (SELECT count(*) FROM batch b WHERE b.log_id = l.id AND b.status <> 2) AS unsettled,
      (SELECT count(*) FROM batch b WHERE b.log_id = l.id AND b.registered_at IS NULL) AS unpublished,
      coalesce((SELECT extract(epoch FROM clock_timestamp() - min(b.sealed_at)) FROM batch b
                WHERE b.log_id = l.id AND b.status <> 2), 0)::float8 AS "oldestSeconds",
      (SELECT extract(epoch FROM clock_timestamp() - b.registered_at)::float8 FROM batch b
       WHERE b.log_id = l.id AND b.registered_at IS NOT NULL ORDER BY b.tree_size DESC LIMIT 1) AS "publishedSeconds"
    FROM log l ORDER BY l.id`;
}
