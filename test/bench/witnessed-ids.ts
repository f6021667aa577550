import { setTimeout as delay } from 'node:timers/promises';
import type { Pool } from '../../src/store/connect.js';
import type { LoadGenerator } from './load.js';
import type { Services } from './services.js';

/** Over how many submissions reads are spread. */
const IDS = 2_000;
const FEWEST_ROWS = 10_000;
const WITNESSED = 2;
const GIVE_UP_MS = 120_000;

/**
 * Sees to it that there are witnessed submissions, by creating some where there are too few, and picks ids among all of
 * them at random.
 */
export async function prepareReads(
  { services, generator }: { services: Services; generator: LoadGenerator },
  pool: Pool,
  baseUrl: string,
): Promise<string[]> {
  while ((await countRows(pool)) < FEWEST_ROWS) {
    await generator.send({
      baseUrl,
      apiKey: services.apiKey,
      seconds: 2,
      method: 'post',
      path: '/v1/attestations',
    });
  }
  await waitUntilWitnessed(pool);
  const size = await countRows(pool);
  const indexes = Array.from({ length: IDS }, () => Math.floor(Math.random() * size));
  const rows = await pool<{ id: string }[]>`
    SELECT s.id FROM submission s JOIN log l ON l.id = s.log_id
    WHERE l.origin = 'live.localhost' AND s.log_index = ANY(${indexes})`;
  return rows.map(({ id }) => id);
}

/** Waits for the worker to have every batch witnessed. */
export async function waitUntilWitnessed(pool: Pool): Promise<void> {
  for (const startedMs = performance.now(); performance.now() - startedMs < GIVE_UP_MS; ) {
    const [row] = await pool<{ size: number; unsettled: number }[]>`
      SELECT coalesce(max(tree_size), 0) AS size, count(*) FILTER (WHERE status <> ${WITNESSED}) AS unsettled
      FROM batch b JOIN log l ON l.id = b.log_id WHERE l.origin = 'live.localhost'`;
    if (row?.unsettled === 0 && row.size === (await countRows(pool))) return;
    await delay(100);
  }
  throw new Error('not everything is witnessed after two minutes');
}

async function countRows(pool: Pool): Promise<number> {
  const [row] = await pool<{ size: number }[]>`
    SELECT coalesce(max(log_index) + 1, 0) AS size FROM submission s JOIN log l ON l.id = s.log_id
    WHERE l.origin = 'live.localhost'`;
  return row?.size ?? 0;
}
