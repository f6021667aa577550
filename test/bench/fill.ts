import { setTimeout as delay } from 'node:timers/promises';
import { type ShutdownHooks, withShutdownHooks } from '../../src/server/core/shutdown.js';
import type { Pool } from '../../src/server/database/connect.js';
import { generateSubmissions, openLiveLog } from './prefill.js';
import { openAnotherService, openPool, type Services, startRole } from './services.js';
import { runSeal, SMALL_BATCH } from './stages/seal.js';
import type { SealResult } from './stages/seal-process.js';

const GIVE_UP_MS = 300_000;
const WITNESSED = 2;
/** The level of runs that are never merged. */
const LARGEST_RUN = 4;

/**
 * Fills the service's empty database with witnessed submissions, as it would be had they come in at 2,000 a second.
 * Returns what sealing them took.
 */
export async function fillService(services: Services, rows: number): Promise<SealResult> {
  return withShutdownHooks(async (hooks) => {
    const { dir, projectId, databaseUrl, env } = services;
    const pool = openPool(databaseUrl, hooks);
    await generateSubmissions({ pool, dir, projectId }, rows);
    const { logId } = await openLiveLog({ pool, dir });
    await markIndexed(pool, logId, rows);
    const registerDir = env.CHECKPOINT_REGISTER ?? '';
    const sealed = await runSeal({ databaseUrl, dir, registerDir, batchMaxLeaves: SMALL_BATCH });
    const worker = await startRole(services, 'worker');
    hooks.add(worker.stop);
    await waitUntilWitnessed(pool, logId);
    await copyEvidence(pool, logId);
    return sealed;
  });
}

/** A service whose log has so many submissions, filled when it is first asked for. */
export type ServiceOfSize = (rows: number) => Promise<Services>;

/** Installations with logs of several sizes: `services`, which has `rows`, and others beside it. */
export function openSizes(services: Services, rows: number, hooks: ShutdownHooks): ServiceOfSize {
  const filled = new Map([[rows, Promise.resolve(services)]]);
  const fill = async (size: number) => {
    const startedMs = performance.now();
    const another = await openAnotherService(services, `rows_${size}`, hooks);
    await fillService(another, size);
    console.log(`${size} submissions filled in ${((performance.now() - startedMs) / 1000).toFixed(0)} s`);
    return another;
  };
  return (size) => {
    const found = filled.get(size) ?? fill(size);
    filled.set(size, found);
    return found;
  };
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

/** No measure looks up by artifact. Otherwise processes would index them while others are measured. */
async function markIndexed(pool: Pool, logId: number, rows: number): Promise<void> {
  await pool`
    INSERT INTO artifact_run (log_id, level, first_index, end_index, is_current)
    VALUES (${logId}, ${LARGEST_RUN}, 0, ${rows}, true)`;
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
