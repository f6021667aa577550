import type { Sql } from '../../database/connect.js';

/** Leaves per row. */
const BLOCK = 1_024;
/** Up to this many unsealed leaves are read one by one; a log that is sealed as it grows rarely has more. */
const MIN_TAIL = 4 * BLOCK;
/** The most leaves of one statement. */
const MAX_LEAVES = 64 * BLOCK;

/**
 * Writes the missing time bounds of a log's unsealed leaves, of at most 65,536 leaves a call, and deletes those of
 * sealed leaves. Processes may run it concurrently: times never change, so all write the same.
 *
 * @returns whether more are missing
 */
export async function writeTailTimes(sql: Sql, logId: number): Promise<boolean> {
  const { sealed, size, noted, oldest } = await findTail(sql, logId);
  if (oldest !== null && oldest <= sealed) {
    await sql`DELETE FROM tail_time WHERE log_id = ${logId} AND end_index <= ${sealed}`;
  }
  const first = Math.max(noted ?? 0, sealed - (sealed % BLOCK));
  const end = size - (size % BLOCK);
  if (end <= first || size - sealed < MIN_TAIL) return false;
  const until = Math.min(end, first + MAX_LEAVES);
  await sql`
    INSERT INTO tail_time (log_id, end_index, first_index, earliest, latest)
    SELECT ${logId}, max(log_index) + 1, min(log_index), min(submitted_at), max(submitted_at) FROM submission
    WHERE log_id = ${logId} AND log_index >= ${first} AND log_index < ${until}
    GROUP BY log_index / ${BLOCK}::integer
    ON CONFLICT DO NOTHING`;
  return until < end;
}

/** A log's sealed and total size, and the range that has time bounds. */
type Tail = { sealed: number; size: number; noted: number | null; oldest: number | null };

async function findTail(sql: Sql, logId: number): Promise<Tail> {
  const [tail] = await sql<Tail[]>`
    SELECT coalesce((SELECT max(tree_size) FROM batch WHERE log_id = ${logId}), 0) AS sealed,
           coalesce((SELECT max(log_index) + 1 FROM submission WHERE log_id = ${logId}), 0) AS size,
           (SELECT max(end_index) FROM tail_time WHERE log_id = ${logId}) AS noted,
           (SELECT min(end_index) FROM tail_time WHERE log_id = ${logId}) AS oldest`;
  if (tail === undefined) throw new Error('the tail was not found');
  return tail;
}
