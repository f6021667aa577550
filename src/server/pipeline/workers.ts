import type { Sql } from '../database/connect.js';

/** Records that a worker is running. */
export async function recordWorker(sql: Sql, id: string): Promise<void> {
  await sql`
    INSERT INTO worker (id) VALUES (${id})
    ON CONFLICT ON CONSTRAINT worker_pkey DO UPDATE SET seen_at = clock_timestamp()`;
}

/** Deletes a worker that has shut down. */
export async function deleteWorker(sql: Sql, id: string): Promise<void> {
  await sql`DELETE FROM worker WHERE id = ${id}`;
}

/** Deletes workers last seen a day ago or longer: they crashed. */
export async function pruneWorkers(sql: Sql): Promise<void> {
  await sql`DELETE FROM worker WHERE seen_at < clock_timestamp() - interval '1 day'`;
}

/**
 * Returns whether a worker was seen within `silentMs`, and whether a batch is unsettled `lateMs` after its deadline.
 */
export async function findDelays(
  sql: Sql,
  { silentMs, lateMs }: { silentMs: number; lateMs: number },
): Promise<{ isWorking: boolean; isLate: boolean }> {
  const before = (ms: number) => sql`clock_timestamp() - ${ms}::bigint * interval '1 millisecond'`;
  const [row] = await sql<{ isWorking: boolean; isLate: boolean }[]>`
    SELECT EXISTS (SELECT FROM worker WHERE seen_at > ${before(silentMs)}) AS "isWorking",
      EXISTS (
        SELECT FROM log l CROSS JOIN LATERAL (
          SELECT b.deadline_at FROM batch b WHERE b.log_id = l.id AND b.status = 1 ORDER BY b.tree_size LIMIT 1) oldest
        WHERE l.frozen_at IS NULL AND oldest.deadline_at < ${before(lateMs)}) AS "isLate"`;
  if (row === undefined) throw new Error('the database returned no row');
  return row;
}
