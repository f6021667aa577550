/** What must be done with submissions before their rows are removed. */
import type { Sql } from '../../database/connect.js';
import type { Log } from '../../log/store/logs.js';
import { ArchiveError } from './archive-error.js';

/**
 * Throws ArchiveError if exports, webhooks, idempotency keys or the index of artifacts still need the rows of leaves below `end`. `isWhole`: all
 * of the log's are removed, which nothing indexes any more.
 */
export async function assertReleased(
  sql: Sql,
  { id, origin }: Log,
  end: number,
  { isWhole }: { isWhole: boolean },
): Promise<void> {
  const [found] = await sql<
    { exports: string | null; webhooks: string | null; isKeyed: boolean; indexed: number }[]
  >`
    SELECT (
      SELECT x.id FROM export x JOIN log l ON l.id = ${id} AND l.environment = x.environment
      LEFT JOIN export_cursor k ON k.export_id = x.id AND k.log_id = l.id
      WHERE x.stopped_at IS NULL AND (
        coalesce(k.through_size, 0) < cut.size OR k.backfill_size < least(k.start_size, cut.size)
        OR EXISTS (SELECT FROM export_shipment p WHERE p.export_id = x.id AND p.log_id = ${id} AND p.tree_size <= cut.size
                   AND (p.wanted_revision > p.shipped_revision OR p.unstamped_from IS NOT NULL)))
      LIMIT 1) AS exports,
      (SELECT r.webhook_id FROM webhook_range r WHERE r.log_id = ${id} AND r.next_index < ${end} LIMIT 1) AS webhooks,
      coalesce((SELECT min(created_at) FROM idempotency_key) <= interval '1 minute' + (
        SELECT submitted_at FROM submission WHERE log_id = ${id} AND log_index = ${end - 1}), false) AS "isKeyed",
      coalesce((SELECT max(end_index) FROM artifact_run WHERE log_id = ${id} AND is_current), 0) AS indexed
    FROM (SELECT min(tree_size) AS size FROM batch WHERE log_id = ${id} AND tree_size >= ${end}) cut`;
  const { exports = null, webhooks = null, isKeyed = false, indexed = 0 } = found ?? {};
  if (exports !== null) throw new ArchiveError(`the export ${exports} has not shipped all of it yet`);
  if (webhooks !== null) throw new ArchiveError(`the webhook ${webhooks} has not sent all its events yet`);
  if (isKeyed)
    throw new ArchiveError(
      'a retry by an Idempotency-Key may still be answered with one of them: name a smaller --end, or wait until the keys have expired',
    );
  if (!isWhole && indexed < end)
    throw new ArchiveError(
      `the artifacts of ${origin} are indexed up to leaf ${indexed} only: name a smaller --end, or wait`,
    );
}
