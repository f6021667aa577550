import type { Pool } from '../../src/store/connect.js';
import { until } from './until.js';

/** Waits until every leaf is sealed and every batch witnessed. */
export async function untilWitnessed(pool: Pool, deadlineMs?: number): Promise<void> {
  await until('everything is witnessed', () => isWitnessed(pool), deadlineMs);
}

async function isWitnessed(pool: Pool): Promise<boolean> {
  const [row] = await pool<{ open: boolean }[]>`
    SELECT EXISTS (SELECT FROM batch WHERE status <> 2)
        OR EXISTS (SELECT FROM submission s WHERE NOT EXISTS (
             SELECT FROM batch b WHERE b.log_id = s.log_id AND b.tree_size > s.log_index)) AS open`;
  return row?.open === false;
}
