import type { Sql } from '../../database/connect.js';
import { settledSize } from './exports.js';

/** How far exports have come. `shippedThrough` is a tree size of the newest log; batches are counted up to a maximum. */
export type ExportProgress = {
  exportId: string;
  shippedThrough: number;
  lagBatches: number;
  lagSeconds: number;
};

/** Batches are counted up to this: counting more would cost more than shipping them. */
const MAX_COUNTED = 1_000;

/** Reads how far exports have come. Costs one index entry per batch that is not shipped, up to a maximum. */
export async function readExportProgress(sql: Sql, ids: readonly string[]): Promise<ExportProgress[]> {
  return sql<ExportProgress[]>`
    SELECT x.id AS "exportId", lag.n::integer AS "lagBatches",
      coalesce(CASE WHEN lag.n = 0 AND x.status <> 3 THEN newest.settled ELSE newest.size END, 0) AS "shippedThrough",
      coalesce(extract(epoch FROM clock_timestamp() - lag.since), 0)::float8 AS "lagSeconds"
    FROM export x
    LEFT JOIN LATERAL (
      SELECT least(CASE WHEN k.backfill_size < k.start_size THEN k.backfill_size ELSE k.through_size END,
        (SELECT min(b.first_index) FROM export_shipment p
         JOIN batch b ON b.log_id = p.log_id AND b.tree_size = p.tree_size
         WHERE p.export_id = x.id AND p.log_id = k.log_id AND p.wanted_revision > p.shipped_revision
           AND p.shipped_revision = 0))
        AS size, s.size AS settled
      FROM export_cursor k JOIN log l ON l.id = k.log_id CROSS JOIN LATERAL (${settledSize(sql)}) s(size)
      WHERE k.export_id = x.id ORDER BY k.log_id DESC LIMIT 1) newest ON true
    CROSS JOIN LATERAL (${lag(sql)}) lag
    WHERE x.id = ANY(${[...ids]})`;
}

/** Counts the settled batches of an export `x` that are not shipped, and finds when the oldest was sealed. */
const lag = (sql: Sql) => sql`
  SELECT least(count(*), ${MAX_COUNTED}) AS n, min(b.sealed_at) AS since FROM (
    (SELECT p.log_id, p.tree_size FROM export_shipment p
     WHERE p.export_id = x.id AND p.wanted_revision > p.shipped_revision LIMIT ${MAX_COUNTED})
    UNION (
      SELECT c.log_id, c.tree_size FROM export_cursor k JOIN log l ON l.id = k.log_id
      CROSS JOIN LATERAL (${settledSize(sql)}) s(size)
      CROSS JOIN LATERAL (
        SELECT c.log_id, c.tree_size FROM batch_content c
        WHERE c.project_id = x.project_id AND c.log_id = k.log_id AND (x.schema IS NULL OR c.schema = x.schema)
          AND (c.tree_size > k.through_size AND c.tree_size <= s.size
               OR c.tree_size > k.backfill_size AND c.tree_size <= k.start_size)
        ORDER BY c.project_id, c.log_id, c.tree_size LIMIT ${MAX_COUNTED}) c
      WHERE k.export_id = x.id AND x.status <> 3)) due
  JOIN batch b ON b.log_id = due.log_id AND b.tree_size = due.tree_size AND b.status <> 1`;

/** The exports of an installation by status, and the worst of them. */
export type ExportTotals = {
  active: number;
  failing: number;
  lagBatches: number;
  lagSeconds: number;
  failures: number;
};

/** The most exports whose lag is read for the metrics: those that have been due longest. */
const MAX_MEASURED = 200;

/** Reads the totals for the metrics: the lag is the sum, and the greatest age, over the exports due longest. */
export async function readExportTotals(sql: Sql): Promise<ExportTotals> {
  const [row] = await sql<ExportTotals[]>`
    WITH measured AS (
      SELECT x.* FROM export x WHERE x.due_at <= clock_timestamp() OR x.failures > 0 AND x.status <> 3
      ORDER BY x.due_at LIMIT ${MAX_MEASURED})
    SELECT (SELECT count(*) FROM export WHERE status = 1)::integer AS active,
      (SELECT count(*) FROM export WHERE status = 2)::integer AS failing,
      coalesce((SELECT max(failures) FROM export WHERE status <> 3), 0)::integer AS failures,
      coalesce(sum(lag.n), 0)::integer AS "lagBatches",
      coalesce(extract(epoch FROM clock_timestamp() - min(lag.since)), 0)::float8 AS "lagSeconds"
    FROM measured x CROSS JOIN LATERAL (${lag(sql)}) lag`;
  return row ?? { active: 0, failing: 0, lagBatches: 0, lagSeconds: 0, failures: 0 };
}
