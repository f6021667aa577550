/** A migrated Postgres cluster that a whole run makes once and that its other clusters are copies of. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { connectPool, type Pool } from '../../../src/server/database/connect.js';
import { migrate } from '../../../src/server/database/migrate.js';
import { lockDataDir } from '../../../src/server/embedded/data-dir.js';
import { startPostgres } from '../../../src/server/embedded/postgres.js';
import type { ServerLog } from '../../../src/server/embedded/server-process.js';
import { DATA_DIR_PREFIX, dataFolder } from './data-folder.js';

const execute = promisify(execFile);

const SILENT: ServerLog = { debug: () => {}, warn: () => {}, error: () => {} };

/** What a cluster consists of in its data directory. */
const PARTS = ['postgres', 'postgres.password'];

export type ClusterTemplate = { path: string; remove(): Promise<void> };

/** Makes it, and stops the server that it was made with. */
export async function makeClusterTemplate(): Promise<ClusterTemplate> {
  const dataDir = await lockDataDir({ path: await mkdtemp(join(dataFolder(), DATA_DIR_PREFIX)) });
  const remove = async () => {
    await dataDir.release();
    await rm(dataDir.path, { recursive: true });
  };
  try {
    const postgres = await startPostgres({ dataDir, log: SILENT });
    const pool = connectPool({ url: postgres.url, name: 'template', max: 1, statementTimeoutMs: 60_000 });
    const { password } = new URL(postgres.url);
    await migrate(pool)
      .then(() => makePasswordCheap(pool, password))
      .finally(async () => {
        await pool.end();
        await postgres.stop();
      });
    return { path: dataDir.path, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** SCRAM with one iteration in place of 4,096, which take each client 3 ms of CPU a connection. */
async function makePasswordCheap(pool: Pool, password: string): Promise<void> {
  await pool.begin(async (sql) => {
    await sql`SET LOCAL scram_iterations = 1`;
    await sql.unsafe(`ALTER ROLE CURRENT_USER PASSWORD '${password}'`);
  });
}

/**
 * Copies the run's template in place of initdb and the migrations. Does nothing in a run without one.
 *
 * @param path a data directory without a cluster
 */
export async function copyClusterTemplate(path: string): Promise<void> {
  const { TEST_CLUSTER: template } = process.env;
  if (!template) return;
  await execute('cp', ['-a', ...PARTS.map((part) => join(template, part)), path]);
}
