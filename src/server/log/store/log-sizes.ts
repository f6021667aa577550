import type { Sql } from '../../database/connect.js';

/** A log with the published size and checkpoint, both missing before its first batch. */
export type PublishedLog = {
  id: number;
  environment: number;
  lane: number;
  epoch: number;
  origin: string;
  createdAt: Date;
  closedAt: Date | null;
  frozenAt: Date | null;
  treeSize: number | null;
  checkpoint: string | null;
};

/** A size of a log, and when it was sealed. */
export type LogSize = { logId: number; sealedAt: Date; treeSize: number };

/** Lists the logs of the environments by lane, the newest epoch of each first. */
export async function listPublishedLogs(sql: Sql, environments: readonly number[]): Promise<PublishedLog[]> {
  return sql<PublishedLog[]>`
    SELECT l.id, l.environment, l.lane, l.epoch, l.origin, l.created_at AS "createdAt", l.frozen_at AS "frozenAt",
      lead(l.created_at) OVER (PARTITION BY l.environment, l.lane ORDER BY l.epoch) AS "closedAt",
      b.tree_size AS "treeSize", b.note AS checkpoint
    FROM log l LEFT JOIN LATERAL (
      SELECT tree_size, note FROM batch
      WHERE log_id = l.id AND registered_at IS NOT NULL ORDER BY tree_size DESC LIMIT 1) b ON true
    WHERE l.environment = ANY(${[...environments]})
    ORDER BY l.environment, l.lane, l.epoch DESC`;
}

/**
 * Lists at most `count` published sizes of each log, oldest first: those of the batches at evenly spaced leaves, the newest
 * included. Reads an index entry for each.
 */
export async function listLogSizes(
  sql: Sql,
  logs: readonly { id: number; treeSize: number }[],
  count: number,
): Promise<LogSize[]> {
  return sql<LogSize[]>`
    SELECT DISTINCT b.log_id AS "logId", b.sealed_at AS "sealedAt", b.tree_size AS "treeSize"
    FROM unnest(${logs.map(({ id }) => id)}::integer[], ${logs.map(({ treeSize }) => treeSize)}::bigint[]) l(id, size)
    CROSS JOIN generate_series(1, ${count}::integer) n
    CROSS JOIN LATERAL (
      SELECT * FROM batch WHERE log_id = l.id AND tree_size >= ceil(l.size::numeric * n / ${count}::integer)::bigint
      ORDER BY tree_size LIMIT 1) b
    ORDER BY b.log_id, b.tree_size`;
}
