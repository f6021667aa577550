/**
 * The clock of a test's database, which the test moves on. Everything that is ever due, leased or too old is so by the
 * database's `clock_timestamp()` and `now()`; here functions of these names are found before the server's own.
 */
import postgres from 'postgres';
import type { Pool } from '../../../src/server/database/connect.js';

/** Gives the database a clock of its own, which runs as the server's does. To be called before the pools are opened. */
export async function installClock(databaseUrl: string): Promise<void> {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} });
  await sql
    .unsafe(`
      CREATE SCHEMA clock;
      CREATE TABLE clock.ahead AS SELECT 0::bigint AS ms;
      CREATE FUNCTION clock.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS
        'BEGIN RETURN pg_catalog.clock_timestamp() + (SELECT ms FROM clock.ahead) * interval ''1 millisecond''; END';
      CREATE FUNCTION clock.now() RETURNS timestamptz LANGUAGE plpgsql STABLE AS
        'BEGIN RETURN pg_catalog.now() + (SELECT ms FROM clock.ahead) * interval ''1 millisecond''; END';
      DO $$ DECLARE r record; BEGIN
        EXECUTE format('ALTER DATABASE %I SET search_path = clock, pg_catalog, public', current_database());
        FOR r IN SELECT d.adrelid::regclass AS "table", a.attname AS "column", pg_get_expr(d.adbin, d.adrelid) AS "expr"
                 FROM pg_attrdef d JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
                 WHERE pg_get_expr(d.adbin, d.adrelid) IN ('clock_timestamp()', 'now()') LOOP
          EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT clock.%s', r."table", r."column", r."expr");
        END LOOP;
      END $$`)
    .simple();
  await sql.end();
}

/** Lets time pass. */
export async function letPass({ pool }: { pool: Pool }, ms: number): Promise<void> {
  await pool`UPDATE clock.ahead SET ms = ms + ${Math.round(ms)}::bigint`;
}
