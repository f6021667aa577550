import type { Pool } from './connect.js';

/** The indexes that processes of the version before need, each with the migration that replaces it. */
const FORMER = ['submission_by_project', 'submission_by_schema', 'submission_id'].map((index) => ({
  index,
  migration: '0010_read_small_indexes.sql',
}));

/**
 * Drops indexes that only processes of the version before read, `graceMs` after the migration that has replaced them: by
 * then they have been replaced as well. Nothing else waits for it. Several workers may do it at once.
 *
 * @returns the names of the indexes that were dropped
 */
export async function dropFormerIndexes(pool: Pool, graceMs: number): Promise<string[]> {
  const due = await pool<{ index: string }[]>`
    SELECT f.index FROM unnest(${FORMER.map(({ index }) => index)}::text[], ${FORMER.map(({ migration }) => migration)}::text[])
      AS f(index, migration)
    JOIN migration m ON m.name = f.migration AND m.ran_at <= clock_timestamp() - ${graceMs}::bigint * interval '1 millisecond'
    WHERE to_regclass(f.index) IS NOT NULL`;
  for (const { index } of due) await pool`DROP INDEX CONCURRENTLY IF EXISTS ${pool(index)}`;
  return due.map(({ index }) => index);
}
