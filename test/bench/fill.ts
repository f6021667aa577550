import { setTimeout as delay } from 'node:timers/promises';
import { withShutdownHooks } from '../../src/server/core/shutdown.js';
import type { Pool } from '../../src/server/store/database/connect.js';
import { generateSubmissions, openLiveLog } from './prefill.js';
import { runSeal, SMALL_BATCH } from './seal.js';
import type { SealResult } from './seal-process.js';
import { openPool, type Services, startRole } from './services.js';

const GIVE_UP_MS = 300_000;
const WITNESSED = 2;

/**
 * Fills the service's empty database with witnessed submissions, as it would be had they come in at 2,000 a second.
 * Returns what sealing them took.
 */
export async function fillService(services: Services, rows: number): Promise<SealResult> {
  return withShutdownHooks(async (hooks) => {
    const { dir, projectId, databaseUrl, env } = services;
    const pool = openPool(databaseUrl, hooks);
    await generateSubmissions({ pool, dir, projectId }, rows);
    const registerDir = env.CHECKPOINT_REGISTER ?? '';
    const sealed = await runSeal({ databaseUrl, dir, registerDir, batchMaxLeaves: SMALL_BATCH });
    const worker = await startRole(services, 'worker');
    hooks.add(worker.stop);
    const { logId } = await openLiveLog({ pool, dir });
    await waitUntilWitnessed(pool, logId);
    await copyEvidence(pool, logId);
    return sealed;
  });
}

/** Waits until every batch of a log is witnessed. */
export async function waitUntilWitnessed(pool: Pool, logId: number): Promise<void> {
  for (const startedMs = performance.now(); performance.now() - startedMs < GIVE_UP_MS; await delay(100)) {
    const [row] = await pool<{ left: number; vouched: boolean }[]>`
      SELECT count(*) AS left, EXISTS (SELECT FROM evidence WHERE log_id = ${logId}) AS vouched
      FROM batch WHERE log_id = ${logId} AND status <> ${WITNESSED}`;
    if (row?.left === 0 && row.vouched) return;
  }
  throw new Error('not everything is witnessed after five minutes');
}

/** The witness was asked about the last checkpoint alone; in time it would have been about each, with as much to say. */
async function copyEvidence(pool: Pool, logId: number): Promise<void> {
  await pool`
    INSERT INTO evidence (log_id, witness, tree_size, kind, evidence, detail, landed_at)
    SELECT e.log_id, e.witness, b.tree_size, e.kind, e.evidence, e.detail, e.landed_at
    FROM (SELECT * FROM evidence WHERE log_id = ${logId} ORDER BY tree_size DESC LIMIT 1) e
    JOIN batch b ON b.log_id = e.log_id
    ON CONFLICT DO NOTHING`;
  await pool`VACUUM (ANALYZE)`;
}

/** The ids of `count` of the submissions that the database was filled with, at random. */
export async function pickIds(
  { databaseUrl, dir }: Pick<Services, 'databaseUrl' | 'dir'>,
  rows: number,
  count: number,
): Promise<string[]> {
  return withShutdownHooks(async (hooks) => {
    const pool = openPool(databaseUrl, hooks);
    const { logId } = await openLiveLog({ pool, dir });
    const indexes = Array.from({ length: count }, () => Math.floor(Math.random() * rows));
    const found = await pool<{ id: string }[]>`
      SELECT id FROM submission WHERE log_id = ${logId} AND log_index = ANY(${indexes})`;
    return found.map(({ id }) => id);
  });
}
