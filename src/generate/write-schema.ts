/**
 * The third part of `npm run generate`: dumps the schema that the migrations create, for reviewers. The check names another
 * checkout to write it to.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connectPool } from '../server/database/connect.js';
import { migrate } from '../server/database/migrate.js';
import { lockDataDir } from '../server/embedded/data-dir.js';
import { startPostgres } from '../server/embedded/postgres.js';
import { dumpSchema, SCHEMA } from './dump-schema.js';

const [out = fileURLToPath(new URL('../..', import.meta.url))] = process.argv.slice(2);

const log = { debug: () => {}, warn: console.warn, error: console.error };
const dataDir = await lockDataDir({ path: await mkdtemp(join(tmpdir(), 'attest-schema-')) });
try {
  const server = await startPostgres({ dataDir, log });
  const pool = connectPool({ url: server.url, name: 'generate', max: 1, statementTimeoutMs: 60_000 });
  try {
    await migrate(pool);
    await writeFile(resolve(out, SCHEMA), await dumpSchema(pool));
  } finally {
    await pool.end();
    await server.stop();
  }
} finally {
  await dataDir.release();
  await rm(dataDir.path, { recursive: true });
}
