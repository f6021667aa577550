/** Migrations run once, and a database that this version cannot migrate is rejected and not changed. */
import t, { type Test } from 'tap';
import { dumpSchema } from '../../../src/generate/dump-schema.js';
import { connectPool, type Pool } from '../../../src/server/database/connect.js';
import { assertMigrated, migrate } from '../../../src/server/database/migrate.js';
import { drain, openPipeline } from '../../support/pipeline.js';
import { testDatabase } from '../../support/servers/shared-servers.js';

async function openDatabase(
  t: Test,
  options: { empty?: boolean } = {},
): Promise<{ url: string; pool: Pool }> {
  const url = await testDatabase(t, options);
  const pool = connectPool({ url, name: 'test', max: 2, statementTimeoutMs: 60_000 });
  t.teardown(() => pool.end({ timeout: 1 }));
  return { url, pool };
}

/** Makes the schema that of version 0.1.0, as far as it differs, with the names of these migrations. */
async function toPredecessor(pool: Pool, migrations: readonly string[]): Promise<void> {
  await pool.unsafe(`
    CREATE FUNCTION accept_submissions(p_log_id integer) RETURNS void LANGUAGE sql AS '';
    CREATE FUNCTION covered(p_log_id integer) RETURNS boolean LANGUAGE sql AS 'SELECT true';
    CREATE FUNCTION required_witness(p policy) RETURNS SETOF text LANGUAGE sql AS 'SELECT NULL::text';
    ALTER INDEX audit_entry_default_project_id_id_idx RENAME TO audit_entry_default_by_project;
    ALTER INDEX audit_entry_default_resource_id_id_idx RENAME TO audit_entry_default_by_resource;
    DELETE FROM migration`);
  for (const name of migrations) await pool`INSERT INTO migration (name) VALUES (${name})`;
}

t.test(
  'a database with all migrations of 0.1.0 is adopted: its rows are kept, its schema is this one',
  async (t) => {
    const { pool } = await openDatabase(t);
    const schema = await dumpSchema(pool);
    await pool`INSERT INTO project (id, name) VALUES ('prj_1', 'kept')`;
    await toPredecessor(pool, ['0001_log.sql', '0005_webhooks.sql', '0041_project_ceilings.sql']);
    t.not(await dumpSchema(pool), schema);
    await t.rejects(assertMigrated(pool), /lacks 0001_initial\.sql: run attest migrate first/);
    t.strictSame(await migrate(pool), []);
    t.equal(await dumpSchema(pool), schema);
    t.strictSame([...(await pool`SELECT name FROM migration`)], [{ name: '0001_initial.sql' }]);
    t.strictSame([...(await pool`SELECT name FROM project`)], [{ name: 'kept' }]);
    await assertMigrated(pool);
  },
);

t.test('a database with some migrations of 0.1.0 is rejected and not changed', async (t) => {
  const { pool } = await openDatabase(t);
  await toPredecessor(pool, ['0001_log.sql', '0005_webhooks.sql']);
  const before = await dumpSchema(pool);
  await t.rejects(
    migrate(pool),
    /before 0\.2\.0 .* \(its newest is 0005_webhooks\.sql\): run attest migrate of/,
  );
  t.equal(await dumpSchema(pool), before);
});

t.test('a database of a newer version is rejected and not changed', async (t) => {
  const { pool } = await openDatabase(t);
  await pool`INSERT INTO migration (name) VALUES ('9999_later.sql')`;
  await t.rejects(migrate(pool), /newer version \(it has 9999_later\.sql\)/);
});

t.test('two processes that migrate at once run each migration once', async (t) => {
  const { url, pool } = await openDatabase(t, { empty: true });
  const other = connectPool({ url, name: 'test', max: 2, statementTimeoutMs: 60_000 });
  t.teardown(() => other.end({ timeout: 1 }));
  const ran = await Promise.all([migrate(pool), migrate(other)]);
  t.strictSame(ran.flat(), ['0001_initial.sql']);
});

t.test(
  'Postgres collects no planner statistics of metadata, in which redacted values would remain',
  async (t) => {
    const { pool, submit, pipeline } = await openPipeline(t, []);
    await submit(20);
    await drain(pipeline);
    await pool`ANALYZE submission`;
    const columns = await pool<{ name: string }[]>`
    SELECT attname AS name FROM pg_stats WHERE schemaname = 'public' AND tablename = 'submission'`;
    const names = columns.map(({ name }) => name);
    t.ok(names.includes('artifact_sha256'));
    for (const name of ['metadata', 'metadata_errors', 'attested_metadata', 'salt'])
      t.notOk(names.includes(name), name);
  },
);
