import type { Pool } from '../../../src/server/database/connect.js';

/**
 * Puts partitions of so many leaves in place of those of all logs, which have no leaves yet: `count` for each. Under a lock,
 * as a worker may add some meanwhile.
 */
export async function makeSmallPartitions(pool: Pool, leaves: number, count = 1): Promise<void> {
  await pool.begin(async (tx) => {
    await tx`LOCK TABLE submission IN ACCESS EXCLUSIVE MODE`;
    for (const { name } of await tx`SELECT name FROM submission_partition`)
      await tx.unsafe(`DROP TABLE ${name}`);
    for (const { id } of await tx`SELECT id FROM log ORDER BY id`)
      for (let n = 0; n < count; n++) await tx`SELECT add_submission_partition(${id}, ${leaves})`;
  });
}
