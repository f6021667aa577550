import type { Sql } from '../../database/connect.js';

/** A change of a batch's status whose events have no ranges yet; `transition` is a proto BatchStatus number. */
type UnnotifiedTransition = { logId: number; treeSize: number; transition: number };

/** Finds the transitions of a batch without ranges, and locks them until the transaction ends. */
export async function lockUnnotified(tx: Sql, batchId: string): Promise<UnnotifiedTransition[]> {
  return tx<UnnotifiedTransition[]>`
    SELECT t.log_id AS "logId", t.tree_size AS "treeSize", t.status AS transition
    FROM batch b JOIN batch_transition t ON t.log_id = b.log_id AND t.tree_size = b.tree_size
    WHERE b.id = ${batchId} AND NOT t.notified ORDER BY t.status FOR UPDATE OF t`;
}

/**
 * Inserts a range for each subscription to `eventType` that was active at the transition and whose project has
 * submissions in the batch. Marks the transition as notified in the same transaction.
 *
 * @returns the ids of the subscriptions that are due now
 */
export async function notifyTransition(
  tx: Sql,
  { logId, treeSize, transition }: UnnotifiedTransition,
  eventType: number,
): Promise<string[]> {
  const ranges = await tx<{ webhookId: string }[]>`
    INSERT INTO webhook_range (webhook_id, log_id, tree_size, transition, next_index, last_index)
    SELECT w.id, ${logId}, ${treeSize}, ${transition}, min(c.first_index), max(c.last_index)
    FROM log l
    JOIN batch_transition t ON t.log_id = l.id AND t.tree_size = ${treeSize} AND t.status = ${transition}
    JOIN webhook w ON w.environment = l.environment AND w.status = 1 AND ${eventType} = ANY (w.events)
                  AND w.active_since <= t.at
    JOIN batch_content c ON c.project_id = w.project_id AND c.log_id = l.id AND c.tree_size = ${treeSize}
    WHERE l.id = ${logId} GROUP BY w.id ON CONFLICT DO NOTHING
    RETURNING webhook_id AS "webhookId"`;
  await tx`
    UPDATE batch_transition SET notified = true
    WHERE log_id = ${logId} AND tree_size = ${treeSize} AND status = ${transition}`;
  const ids = ranges.map(({ webhookId }) => webhookId).sort();
  await makeDue(tx, ids);
  return ids;
}

/** Makes subscriptions due now. Locks them in the order of ids, so that two callers cannot deadlock. */
async function makeDue(tx: Sql, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await tx`
    WITH locked AS (SELECT id FROM webhook WHERE id = ANY(${[...ids]}) ORDER BY id FOR UPDATE)
    UPDATE webhook w SET due_at = clock_timestamp() FROM locked WHERE w.id = locked.id`;
}

/** Finds batches with transitions that have no ranges yet, oldest first. */
export async function findUnnotifiedBatches(sql: Sql, limit: number): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    SELECT DISTINCT ON (t.log_id, t.tree_size) b.id
    FROM batch_transition t JOIN batch b ON b.log_id = t.log_id AND b.tree_size = t.tree_size
    WHERE NOT t.notified ORDER BY t.log_id, t.tree_size LIMIT ${limit}`;
  return rows.map(({ id }) => id);
}

/** Deletes ranges of deleted subscriptions and ranges older than `historyMs`, at most `limit`. */
export async function pruneRanges(sql: Sql, historyMs: number, limit: number): Promise<void> {
  await sql`
    DELETE FROM webhook_range WHERE ctid IN (
      SELECT g.ctid FROM webhook_range g
      WHERE g.webhook_id IN (SELECT id FROM webhook WHERE status = 3)
         OR g.created_at < clock_timestamp() - ${historyMs}::bigint * interval '1 millisecond'
      LIMIT ${limit})`;
}
