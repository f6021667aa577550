import type { Pool } from './connect.js';

/** The indexes that processes of the version before need, each with the migration that replaces it. */
const FORMER = Object.entries({
  '0010_read_small_indexes.sql': ['submission_by_project', 'submission_by_schema', 'submission_id'],
  '0015_numbers.sql': [
    'submission_of_project',
    'submission_of_schema',
    'submission_by_build',
    'submission_by_build_and_schema',
  ],
}).flatMap(([migration, indexes]) => indexes.map((index) => ({ index, migration })));

/**
 * Drops indexes that only processes of the version before read, `graceMs` after the migration that has replaced them: by
 * then they have been replaced as well. Nothing else waits for it. Several workers may do it at once.
 *
 * @returns the names of the indexes that were dropped
 */
export async function dropFormerIndexes(pool: Pool, graceMs: number): Promise<string[]> {
  const due = await pool<{ index: string; isPartitioned: boolean }[]>`
    SELECT f.index, c.relkind = 'I' AS "isPartitioned"
    FROM unnest(${FORMER.map(({ index }) => index)}::text[], ${FORMER.map(({ migration }) => migration)}::text[])
      AS f(index, migration)
    JOIN migration m ON m.name = f.migration AND m.ran_at <= clock_timestamp() - ${graceMs}::bigint * interval '1 millisecond'
    JOIN pg_class c ON c.oid = to_regclass(f.index)`;
  for (const { index, isPartitioned } of due)
    if (isPartitioned) await dropPartitioned(pool, index);
    else await pool`DROP INDEX CONCURRENTLY IF EXISTS ${pool(index)}`;
  return due.map(({ index }) => index);
}

/** Not possible concurrently, so it has the table alone for a moment. Throws if that takes long to get, to be run again. */
async function dropPartitioned(pool: Pool, index: string): Promise<void> {
  await pool.begin(async (tx) => {
    await tx`SET LOCAL lock_timeout = '1s'`;
    await tx`DROP INDEX IF EXISTS ${tx(index)}`;
  });
}
