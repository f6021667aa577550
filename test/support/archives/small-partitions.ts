import type { Pool } from '../../../src/server/database/connect.js';

/** Puts partitions of so many leaves in place of those of all logs, which have no leaves yet: `count` for each. */
export async function makeSmallPartitions(pool: Pool, leaves: number, count = 1): Promise<void> {
  for (const { name } of await pool`SELECT name FROM submission_partition`)
    await pool.unsafe(`DROP TABLE ${name}`);
  for (const { id } of await pool`SELECT id FROM log ORDER BY id`)
    for (let n = 0; n < count; n++) await pool`SELECT add_submission_partition(${id}, ${leaves})`;
}
