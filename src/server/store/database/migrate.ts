import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Pool } from './connect.js';

const FOLDER = fileURLToPath(new URL('../migrations/', import.meta.url));

/**
 * Applies the pending migrations: the files of `migrations/` in order, each in its own transaction. Concurrent callers
 * wait for each other. Throws if a newer version has migrated the database.
 *
 * @returns the names of the files that ran
 */
export async function migrate(pool: Pool): Promise<string[]> {
  const names = listFiles();
  const connection = await pool.reserve();
  try {
    await connection`SET statement_timeout = 0`;
    await connection`SELECT pg_advisory_lock(hashtextextended('attestation-service migrate', 0))`;
    return await runMissing(connection, names);
  } finally {
    await connection`SELECT pg_advisory_unlock_all()`.catch(() => {});
    await connection`RESET statement_timeout`.catch(() => {});
    connection.release();
  }
}

/** Throws if the database cannot be reached or has pending migrations. */
export async function assertMigrated(pool: Pool): Promise<void> {
  const seen = await listSeen(pool).catch((error: Error) => {
    throw new Error(`the database cannot be reached: ${error.message}`, { cause: error });
  });
  const missing = listFiles().filter((name) => !seen.includes(name));
  if (missing.length > 0)
    throw new Error(`the database lacks ${missing.join(', ')}: run attest migrate first`);
}

async function listSeen(pool: Pool): Promise<string[]> {
  const [table] = await pool<{ exists: boolean }[]>`SELECT to_regclass('migration') IS NOT NULL AS exists`;
  if (!table?.exists) return [];
  return (await pool<{ name: string }[]>`SELECT name FROM migration`).map(({ name }) => name);
}

function listFiles(): string[] {
  return readdirSync(FOLDER)
    .filter((name) => name.endsWith('.sql'))
    .sort();
}

async function runMissing(
  connection: Awaited<ReturnType<Pool['reserve']>>,
  names: string[],
): Promise<string[]> {
  await connection`CREATE TABLE IF NOT EXISTS migration (name text PRIMARY KEY, ran_at timestamptz NOT NULL DEFAULT now())`;
  const seen = new Set(
    (await connection<{ name: string }[]>`SELECT name FROM migration`).map((row) => row.name),
  );
  const unknown = [...seen].filter((name) => !names.includes(name)).sort();
  const newest = names.at(-1) ?? '';
  if (unknown.some((name) => name > newest)) {
    throw new Error(
      `the database is of a newer version (it has ${unknown.at(-1)}); run that version or restore a backup`,
    );
  }
  const missing = names.filter((name) => !seen.has(name));
  for (const name of missing) {
    const text = readFileSync(FOLDER + name, 'utf8');
    await connection.unsafe(`${text}\n;INSERT INTO migration (name) VALUES ('${name}')`);
  }
  return missing;
}
