import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Pool, Sql } from './connect.js';

/**
 * What makes the schema of the newest database of before 0.2.0 that of `0001_initial.sql`: functions that nothing calls go,
 * two indexes get the names that Postgres gives them.
 */
const ADOPT = `
  DROP FUNCTION IF EXISTS accept_submissions, covered, required_witness;
  ALTER INDEX IF EXISTS audit_entry_default_by_project RENAME TO audit_entry_default_project_id_id_idx;
  ALTER INDEX IF EXISTS audit_entry_default_by_resource RENAME TO audit_entry_default_resource_id_id_idx;
  TRUNCATE migration;
  INSERT INTO migration (name) VALUES ('0001_initial.sql')`;

/** What follows this line runs statement by statement after the transaction. If one fails, all of the file runs again. */
const OUTSIDE = '\n-- Outside the transaction:\n';

const RETRY_MS = 50;

type Connection = Awaited<ReturnType<Pool['reserve']>>;

const FOLDER = fileURLToPath(new URL('./migrations/', import.meta.url));

/**
 * Applies the pending migrations: the files of `migrations/` in order, each in its own transaction; what a file has after
 * its transaction builds indexes while other processes write. Concurrent callers wait for each other. A database of before 0.2.0 whose 41 migrations have all run is adopted as one that has the first.
 * Throws if it lacks some of them, or if a newer version has migrated the database.
 *
 * @returns the names of the files that ran
 */
export async function migrate(pool: Pool): Promise<string[]> {
  const names = listFiles();
  const connection = await pool.reserve();
  try {
    await connection`SET statement_timeout = 0`;
    await takeTurn(connection);
    return await runMissing(connection, names);
  } finally {
    await connection`SELECT pg_advisory_unlock_all()`.catch(() => {});
    await connection`RESET statement_timeout`.catch(() => {});
    connection.release();
  }
}

/**
 * Throws if the database cannot be reached or has pending migrations.
 *
 * @returns the newest migration if it is of a newer version, whose database this one can still use
 */
export async function assertMigrated(pool: Pool): Promise<string | undefined> {
  const seen = await listSeen(pool).catch((error: Error) => {
    throw new Error(`the database cannot be reached: ${error.message}`, { cause: error });
  });
  const names = listFiles();
  const missing = names.filter((name) => !seen.includes(name));
  if (missing.length > 0)
    throw new Error(`the database lacks ${missing.join(', ')}: run attest migrate first`);
  return findNewer(names, seen);
}

function findNewer(names: string[], seen: Iterable<string>): string | undefined {
  const newest = [...seen].sort().at(-1);
  return newest !== undefined && newest > (names.at(-1) ?? '') ? newest : undefined;
}

/** Waits without a statement of its own: an index is not built concurrently as long as an older statement runs. */
async function takeTurn(connection: Connection): Promise<void> {
  const take = () => connection<{ taken: boolean }[]>`
    SELECT pg_try_advisory_lock(hashtextextended('attestation-service migrate', 0)) AS taken`;
  for (let [turn] = await take(); !turn?.taken; [turn] = await take()) await delay(RETRY_MS);
}

async function listSeen(pool: Sql): Promise<string[]> {
  const [table] = await pool<{ exists: boolean }[]>`SELECT to_regclass('migration') IS NOT NULL AS exists`;
  if (!table?.exists) return [];
  return (await pool<{ name: string }[]>`SELECT name FROM migration`).map(({ name }) => name);
}

function listFiles(): string[] {
  return readdirSync(FOLDER)
    .filter((name) => name.endsWith('.sql'))
    .sort();
}

async function runMissing(connection: Connection, names: string[]): Promise<string[]> {
  await connection`CREATE TABLE IF NOT EXISTS migration (name text PRIMARY KEY, ran_at timestamptz NOT NULL DEFAULT now())`;
  await adopt(connection);
  const seen = new Set(await listSeen(connection));
  const newer = findNewer(names, seen);
  if (newer !== undefined)
    throw new Error(
      `the database is of a newer version (it has ${newer}); run that version or restore a backup`,
    );
  const missing = names.filter((name) => !seen.has(name));
  for (const name of missing) {
    const [text = '', outside] = readFileSync(FOLDER + name, 'utf8').split(OUTSIDE);
    const isRun = `INSERT INTO migration (name) VALUES ('${name}')`;
    await connection.unsafe(outside === undefined ? `${text}\n;${isRun}` : text);
    if (outside === undefined) continue;
    for (const statement of outside.split(/;\n/)) await runOutside(connection, statement);
    await connection.unsafe(isRun);
  }
  return missing;
}

/** Runs a statement, and what its rows name as `statement`, as `\\gexec` of psql does. */
async function runOutside(connection: Connection, text: string): Promise<void> {
  for (const { statement } of await connection.unsafe<{ statement?: string }[]>(text))
    if (statement !== undefined) await connection.unsafe(statement);
}

async function adopt(connection: Connection): Promise<void> {
  const seen = await listSeen(connection);
  if (seen.includes('0041_project_ceilings.sql')) {
    await connection.unsafe(ADOPT);
  } else if (seen.includes('0001_log.sql')) {
    throw new Error(
      `the database is of a version before 0.2.0 and lacks migrations of it (its newest is ${seen.sort().at(-1)}): ` +
        'run attest migrate of the last 0.1.0 first, or use a new database',
    );
  }
}
