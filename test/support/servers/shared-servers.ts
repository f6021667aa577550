import { createHash, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import postgres from 'postgres';
import type { Test } from 'tap';
import { connectPool } from '../../../src/server/database/connect.js';
import { errorCode } from '../../../src/server/database/database-errors.js';
import { migrate } from '../../../src/server/database/migrate.js';
import { until } from '../until.js';
import { startLocalServers } from './local-servers.js';

export interface TestServers {
  databaseUrl: string;
  /** Empty where there is no nats-server; tests that need it import `shared-nats.ts`. */
  natsUrl: string;
}

let started: Promise<TestServers> | undefined;

/**
 * The Postgres and the nats-server of this run, both with user and password in the URL. A test file that is run by
 * itself gets its own pair, which ends with the file.
 */
export function testServers(): Promise<TestServers> {
  started ??= findRunningServers() ?? startOwnServers();
  return started;
}

/**
 * Makes a database for this test, migrated unless `empty`, and returns its URL. It is dropped when the test ends,
 * whatever is still connected to it.
 */
export async function testDatabase(test: Pick<Test, 'teardown'>, { empty = false } = {}): Promise<string> {
  const { databaseUrl } = await testServers();
  const name = `test_${randomBytes(8).toString('hex')}`;
  await withConnection(databaseUrl, async (sql) => {
    const template = empty ? 'template1' : await getTemplate(sql, databaseUrl);
    await sql`CREATE DATABASE ${sql(name)} TEMPLATE ${sql(template)}`;
  });
  test.teardown(() => withConnection(databaseUrl, (sql) => dropDatabase(sql, name)));
  return databaseNamed(databaseUrl, name);
}

/** A copy of a database as it stands, both writable. Connections to it are closed, and made again by who has them. */
export async function copyDatabase(test: Test, url: string): Promise<string> {
  const { databaseUrl } = await testServers();
  const from = new URL(url).pathname.slice(1);
  const name = `test_${randomBytes(8).toString('hex')}`;
  await withConnection(databaseUrl, async (sql) => {
    await until(`${from} is copied`, async () => {
      await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = ${from} AND backend_type = 'client backend'`;
      await sql`CREATE DATABASE ${sql(name)} TEMPLATE ${sql(from)}`;
      return true;
    });
  });
  test.teardown(() => withConnection(databaseUrl, (sql) => dropDatabase(sql, name)));
  return databaseNamed(databaseUrl, name);
}

/** Once more where autovacuum is in it, which only a superuser may end. */
async function dropDatabase(sql: postgres.Sql, name: string): Promise<void> {
  await until(`database ${name} is dropped`, async () => {
    try {
      await sql`DROP DATABASE IF EXISTS ${sql(name)} WITH (FORCE)`;
      return true;
    } catch (error) {
      if (errorCode(error) !== INSUFFICIENT_PRIVILEGE) throw error;
      return false;
    }
  });
}

/** SQLSTATE. */
const INSUFFICIENT_PRIVILEGE = '42501';

function findRunningServers(): Promise<TestServers> | undefined {
  const { TEST_DATABASE_URL: databaseUrl, TEST_NATS_URL: natsUrl = '' } = process.env;
  return databaseUrl ? Promise.resolve({ databaseUrl, natsUrl }) : undefined;
}

async function startOwnServers(): Promise<TestServers> {
  const servers = await startLocalServers();
  // Not at the top: benchmarks import this file, and tap ends a program after 30 s.
  const { default: t } = await import('tap');
  t.teardown(() => servers.stop());
  return servers;
}

/** The migrated database that others are cloned from. Its name is that of these migrations; the first to ask makes it. */
async function getTemplate(sql: postgres.Sql, databaseUrl: string): Promise<string> {
  const name = `template_${hashMigrations()}`;
  await sql`SELECT pg_advisory_lock(hashtextextended(${name}, 0))`;
  const [existing] = await sql`SELECT 1 FROM pg_database WHERE datname = ${name}`;
  if (existing === undefined) {
    const unfinished = `${name}_unfinished`;
    await sql`DROP DATABASE IF EXISTS ${sql(unfinished)} WITH (FORCE)`;
    await sql`CREATE DATABASE ${sql(unfinished)}`;
    const pool = connectPool({
      url: databaseNamed(databaseUrl, unfinished),
      name: 'template',
      max: 1,
      statementTimeoutMs: 60_000,
    });
    await migrate(pool).finally(() => pool.end());
    await sql`ALTER DATABASE ${sql(unfinished)} RENAME TO ${sql(name)}`;
  }
  await sql`SELECT pg_advisory_unlock(hashtextextended(${name}, 0))`;
  return name;
}

function hashMigrations(): string {
  const folder = new URL('../../../src/server/database/migrations/', import.meta.url);
  const hash = createHash('sha256');
  for (const name of readdirSync(folder).sort())
    hash.update(name).update(readFileSync(new URL(name, folder)));
  return hash.digest('hex').slice(0, 16);
}

async function withConnection<T>(url: string, use: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    return await use(sql);
  } finally {
    await sql.end();
  }
}

function databaseNamed(url: string, name: string): string {
  const changed = new URL(url);
  changed.pathname = `/${name}`;
  return changed.href;
}
