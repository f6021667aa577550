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
    const hint = error.message.startsWith(REFUSED_BY_POOLER) ? POOLER_HINT : '';
    throw new Error(`the database cannot be reached: ${error.message}${hint}`, { cause: error });
  });
  const wrong = Object.entries(wanted).flatMap(([name, value]) => {
    const setting = rows.find((row) => row.name === name)?.setting;
    return setting === value ? [] : [`${name} is ${setting ?? 'not known'} and not ${value}`];
  });
  if (wrong.length > 0) {
    throw new Error(
      `the database's sessions do not have the settings they were opened with: ${wrong.join(', ')}; DATABASE_URL must not set these, nor lead through a pooler that ignores them (PgBouncer, in any mode: connect to Postgres itself)`,
    );
  }
  const unsafe = await findUnsafeSetting(pool);
  if (unsafe !== undefined) throw new Error(unsafe);
}

/** PgBouncer's answer to a client that wants a setting of its session. */
const REFUSED_BY_POOLER = 'unsupported startup parameter';
const POOLER_HINT =
  '; this is a pooler, such as PgBouncer, which cannot be used in any mode: connect to Postgres itself';

/** Returns why the server may lose confirmed transactions; undefined if it does not. */
export async function findUnsafeSetting(pool: Pool): Promise<string | undefined> {
  const [settings] = await pool<{ fsync: string; commit: string; standbys: string }[]>`
    SELECT current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS commit,
           current_setting('synchronous_standby_names') AS standbys`;
  if (settings === undefined) throw new Error('the database returned no settings');
  const { fsync, commit, standbys } = settings;
  if (fsync === 'off')
    return 'fsync is off for this database: a crash of its machine would lose submissions that were acknowledged, or the whole database; set it to on';
  if (commit === 'off')
    return 'synchronous_commit is off for this database: a crash of Postgres would lose submissions that were acknowledged; set it to on';
  if (commit === 'local' && standbys !== '')
    return 'synchronous_commit is local for this database, which has a synchronous standby: a failover would lose submissions that were acknowledged; set it to on';
  return undefined;
}

/** Returns the database's clock in Unix milliseconds. */
export async function readDatabaseMs(sql: Sql): Promise<number> {
  const [row] = await sql<{ ms: number }[]>`
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS ms`;
  if (row === undefined) throw new Error('the database returned no time');
  return row.ms;
}

/**
 * In milliseconds; machines with NTP differ by less. The log orders statements and witnesses date them, so more precision is no
 * use there; receivers of webhooks reject signatures of another time.
 */
export const MAX_CLOCK_OFFSET_MS = 5_000;

/** How many milliseconds this machine's clock is ahead of the database's. */
export async function readClockOffsetMs(sql: Sql): Promise<number> {
  const sentMs = Date.now();
  const databaseMs = await readDatabaseMs(sql);
  return Math.round((sentMs + Date.now()) / 2 - databaseMs);
}

/** Makes the commit of this transaction wait for the synchronous standby although it may only have read. */
export async function confirmDurable(tx: Sql): Promise<void> {
  await tx`SELECT confirm_durable()`;
}
