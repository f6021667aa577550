/** Lets the work of a worker in this process come to an end. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Pool } from '../../../src/server/database/connect.js';
import { LogLock, listLogs } from '../../../src/server/log/store/logs.js';
import { findDueJobs } from '../../../src/server/pipeline/reconcile.js';
import { runJob } from '../../../src/server/pipeline/stages.js';
import type { Worker } from '../../../src/server/process/worker/worker.js';

/** Between rounds in which nothing was done, while others hold leases. */
const POLL_MS = 10;

/**
 * Runs due jobs until there are none and the worker is idle, which is when nothing was done during a round. Settling is
 * due as long as a batch waits for a witness, so it alone is not waited for.
 */
export async function drainWorker({ pipeline }: Worker): Promise<void> {
  for (;;) {
    const before = await readProgress(pipeline.pool);
    const due = await findDueJobs(pipeline);
    await Promise.all(due.map((job) => runJob(pipeline, job)));
    await untilNobodySettles(pipeline.pool);
    const left = [...due, ...(await findDueJobs(pipeline))];
    const after = await readProgress(pipeline.pool);
    const isQuiet = before.leases === 0 && before.steps === after.steps;
    if (isQuiet && left.every(({ stage }) => stage.case === 'settle')) return;
    if (before.steps === after.steps) await delay(POLL_MS);
  }
}

/** How many steps of any stage were done so far, and how many witnesses, requests to them, webhooks and exports are leased. */
async function readProgress(pool: Pool): Promise<{ steps: number; leases: number }> {
  const [row] = await pool<{ steps: number; leases: number }[]>`
    SELECT (coalesce(sum(attempt), 0)
            + (SELECT count(*) + count(registered_at) FROM batch)
            + (SELECT count(*) + count(*) FILTER (WHERE notified) FROM batch_transition))::int AS steps,
           count(*) FILTER (WHERE leased_until > clock_timestamp())::int AS leases
    FROM (SELECT attempt, leased_until FROM witness_state UNION ALL SELECT attempt, leased_until FROM witness_request
          UNION ALL SELECT lease, leased_until FROM webhook UNION ALL SELECT lease, leased_until FROM export) w`;
  if (row === undefined) throw new Error('nothing was counted');
  return row;
}

/** Waits for the rows that a settling job has locked: another one passes them over. */
async function untilNobodySettles(pool: Pool): Promise<void> {
  await pool`SELECT FROM batch WHERE status <> 2 ORDER BY log_id, tree_size FOR UPDATE`;
}

/** Locks every log for sealing. @returns the function that unlocks them */
export async function holdSealing(pool: Pool): Promise<() => Promise<void>> {
  const logs = await listLogs(pool);
  const connection = await pool.reserve();
  for (const { id } of logs) await connection`SELECT pg_advisory_lock(${LogLock.SEAL}, ${id})`;
  return async () => {
    await connection`SELECT pg_advisory_unlock_all()`;
    connection.release();
  };
}
