import type { Pool } from '../../src/server/database/connect.js';
import { until } from './until.js';

/** Waits until every leaf is sealed and every batch witnessed. */
export async function untilWitnessed(pool: Pool, deadlineMs?: number): Promise<void> {
  await until('everything is witnessed', () => isWitnessed(pool), deadlineMs);
}

/**
 * Waits until the database has closed the connections of processes that were killed: what they had sent is carried out
 * or undone by then.
 *
 * @param names a regular expression that their connections' names match
 */
export async function untilGone(pool: Pool, names: string): Promise<void> {
  await until('what was killed is gone', async () => {
    const left = await pool`SELECT FROM pg_stat_activity WHERE application_name ~ ${names}`;
    return left.length === 0;
  });
}

/** What the connections of workers are named. */
export const WORKERS = '^attest (worker|webhooks)$';
/** What all connections of the service are named. */
export const PROCESSES = '^attest (?!test$)';

/** Makes every witness due now; what an attempt that is under way says of when to ask next counts no more. */
export async function letWitnessesBeAsked(pool: Pool): Promise<void> {
  await pool`
    UPDATE witness_state SET attempt = attempt + 1, leased_until = NULL, next_attempt_at = clock_timestamp()`;
}

/** Makes it later for what waits: leases of workers that died run out, and witnesses that failed are due again. */
export async function letLeasesRunOut(pool: Pool): Promise<void> {
  await letWitnessesBeAsked(pool);
  await pool`UPDATE witness_request SET leased_until = NULL, next_poll_at = clock_timestamp()`;
  await letDeliveriesRunOut(pool);
}

/** The same for deliveries. Skips those that a living worker has locked: it locks in another order, and they wait for nothing. */
async function letDeliveriesRunOut(pool: Pool): Promise<void> {
  await pool`
    UPDATE webhook_delivery SET next_attempt_at = clock_timestamp()
    WHERE ctid IN (SELECT ctid FROM webhook_delivery WHERE status = 1 FOR UPDATE SKIP LOCKED)`;
  await pool`
    UPDATE webhook SET leased_until = NULL, due_at = clock_timestamp()
    WHERE id IN (SELECT id FROM webhook ORDER BY id FOR UPDATE)`;
}

async function isWitnessed(pool: Pool): Promise<boolean> {
  const [row] = await pool<{ open: boolean }[]>`
    SELECT EXISTS (SELECT FROM batch WHERE status <> 2)
        OR EXISTS (SELECT FROM submission s WHERE NOT EXISTS (
             SELECT FROM batch b WHERE b.log_id = s.log_id AND b.tree_size > s.log_index)) AS open`;
  return row?.open === false;
}
