import type { Pool, Sql } from './connect.js';
import { type SessionOptions, sessionSettings } from './session-settings.js';

/**
 * Throws if a session lacks the settings that it was opened with, as behind a pooler that ignores them, or if the
 * server may lose confirmed transactions.
 */
export async function assertSession(pool: Pool, options: SessionOptions): Promise<void> {
  const wanted = sessionSettings(options);
  const rows = await pool<{ name: string; setting: string }[]>`
    SELECT name, setting FROM pg_settings WHERE name = ANY(${Object.keys(wanted)})`.catch((error: Error) => {
    throw new Error(`the database cannot be reached: ${error.message}`, { cause: error });
  });
  const wrong = Object.entries(wanted).flatMap(([name, value]) => {
    const setting = rows.find((row) => row.name === name)?.setting;
    return setting === value ? [] : [`${name} is ${setting ?? 'not known'} and not ${value}`];
  });
  if (wrong.length > 0) {
    throw new Error(
      `the database's sessions do not have the settings they were opened with: ${wrong.join(', ')}; DATABASE_URL must not set these, nor lead through a pooler that ignores them (PgBouncer: connect to Postgres itself)`,
    );
  }
  const unsafe = await findUnsafeSetting(pool);
  if (unsafe !== undefined) throw new Error(unsafe);
}

/** Returns why the server may lose confirmed transactions; undefined if it does not. */
export async function findUnsafeSetting(pool: Pool): Promise<string | undefined> {
  const [off] = await pool<{ name: string }[]>`
    SELECT name FROM unnest(${Object.keys(UNSAFE_WHEN_OFF)}::text[]) name WHERE current_setting(name) = 'off' LIMIT 1`;
  if (off === undefined) return undefined;
  return `${off.name} is off for this database: ${UNSAFE_WHEN_OFF[off.name]}; set it to on`;
}

/** The consequence of each setting being off. */
const UNSAFE_WHEN_OFF: Record<string, string> = {
  synchronous_commit: 'a crash of Postgres would lose submissions that were acknowledged',
  fsync: 'a crash of its machine would lose submissions that were acknowledged, or the whole database',
};

/** Returns the database's clock in Unix milliseconds. */
export async function readDatabaseMs(sql: Sql): Promise<number> {
  const [row] = await sql<{ ms: number }[]>`
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS ms`;
  if (row === undefined) throw new Error('the database returned no time');
  return row.ms;
}
