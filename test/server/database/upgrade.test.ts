/** Migrations run once, and a database that this version cannot migrate is rejected and not changed. */
import { readdirSync, readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { dumpSchema } from '../../../src/generate/dump-schema.js';
import { connectPool, type Pool } from '../../../src/server/database/connect.js';
import { dropFormerIndexes } from '../../../src/server/database/former-indexes.js';
import { assertMigrated, migrate } from '../../../src/server/database/migrate.js';
import {
  addSparePartitions,
  findUnprepared,
  listPartitions,
} from '../../../src/server/log/store/partitions.js';
import { drain, openPipeline } from '../../support/pipeline.js';
import { testDatabase } from '../../support/servers/shared-servers.js';
import { until } from '../../support/until.js';

/** The migrations, of which a database of 0.2.0 has the first. */
const MIGRATIONS = new URL('../../../src/server/database/migrations/', import.meta.url);
const [FIRST = '', ...LATER] = readdirSync(MIGRATIONS).sort();

async function namesOf(pool: Pool): Promise<string[]> {
  return (await pool<{ name: string }[]>`SELECT name FROM migration ORDER BY name`).map(({ name }) => name);
}

async function openDatabase(
  t: Test,
  options: { empty?: boolean } = {},
): Promise<{ url: string; pool: Pool }> {
  const url = await testDatabase(t, options);
  const pool = connectPool({ url, name: 'test', max: 2, statementTimeoutMs: 60_000 });
  t.teardown(() => pool.end({ timeout: 1 }));
  return { url, pool };
}

const sqlOf = (name: string) => readFileSync(new URL(name, MIGRATIONS), 'utf8');

/** A database as version 0.2.0 has it. */
async function openFormer(t: Test): Promise<{ url: string; pool: Pool }> {
  const database = await openDatabase(t, { empty: true });
  await database.pool.unsafe(`${sqlOf(FIRST)};
    CREATE TABLE migration (name text PRIMARY KEY, ran_at timestamptz NOT NULL DEFAULT now());
    INSERT INTO migration (name) VALUES ('0001_initial.sql')`);
  return database;
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
    const schema = await dumpSchema((await openDatabase(t)).pool);
    const { pool } = await openFormer(t);
    await pool`INSERT INTO project (id, name) VALUES ('prj_1', 'kept')`;
    await toPredecessor(pool, ['0001_log.sql', '0005_webhooks.sql', '0041_project_ceilings.sql']);
    t.not(await dumpSchema(pool), schema);
    await t.rejects(
      assertMigrated(pool),
      new RegExp(`lacks ${[FIRST, ...LATER].join(', ')}: run attest migrate first`),
    );
    t.strictSame(await migrate(pool), LATER);
    t.equal(await dumpSchema(pool), schema);
    t.strictSame(await namesOf(pool), [FIRST, ...LATER]);
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

/** How processes of former versions store a submission: the statement stays prepared. `more`: parameters of a later one. */
async function appendAsFormer(pool: Pool, id: string, more = '', logId = 1): Promise<void> {
  const named = [
    `p_log_id => ${logId}`,
    "p_is_retry => false, p_retention_ms => 1000, p_api_key_id => '{key}', p_project_id => '{prj}'",
    "p_limit_second => '{1000}', p_limit_hour => '{1000}', p_limit_day => '{1000}', p_key => '{1}', p_id => $1",
    "p_submitted_ms => '{1}', p_schema => '{purl}', p_dsse_key_id => '{1}', p_bytes => $2, p_metadata => '{}'",
    'p_metadata_errors => NULL, p_idempotency_key => NULL, p_request_hash => NULL',
  ];
  const bytes = `{"\\\\x${'ab'.repeat(140)}"}`;
  await pool.unsafe(`SELECT * FROM append_submissions(${named.join(', ')}${more})`, [`{${id}}`, bytes], {
    prepare: true,
  });
}

/** The schema without the partition of the logs from before, which a new database does not have. */
const dumpWithoutFormer = async (pool: Pool) =>
  (await dumpSchema(pool)).replace(/CREATE TABLE submission_former [\s\S]*?\n\n/, '');

const listAsFormer = (pool: Pool) => pool`
  SELECT log_index FROM find_artifact(
    'prj', ${Buffer.alloc(32, 0xab)}, ${null}, ${null}::smallint, ${null}::timestamptz, ${null}::timestamptz,
    ${[1]}::integer[], ${[1000]}::bigint[], ${50}, ${1000})`;

t.test(
  'processes of the former version store and find submissions while the schema is upgraded',
  async (t) => {
    const { url, pool } = await openFormer(t);
    await pool`INSERT INTO log (environment, epoch, origin, public_key) VALUES (1, 1, 'log', ''), (2, 1, 'test', '')`;
    const former = connectPool({ url, name: 'test', max: 1, statementTimeoutMs: 10_000 });
    t.teardown(() => former.end({ timeout: 1 }));
    await appendAsFormer(former, 'sub_before');
    await appendAsFormer(former, 'sub_other', '', 2);
    t.equal((await listAsFormer(former)).length, 1);
    // An index is not complete as long as an older snapshot is in use, such as that of a backup.
    const backup = await pool.reserve();
    await backup`BEGIN ISOLATION LEVEL REPEATABLE READ`;
    await backup`SELECT FROM project`;
    const migrator = connectPool({ url, name: 'test', max: 1, statementTimeoutMs: 10_000 });
    t.teardown(() => migrator.end({ timeout: 1 }));
    const migrated = migrate(migrator);
    await until('the index is built', async () => {
      const [row] = await pool`SELECT FROM pg_stat_progress_create_index WHERE datname = current_database()`;
      return row !== undefined;
    });
    await appendAsFormer(former, 'sub_meanwhile');
    t.equal((await listAsFormer(former)).length, 2);
    await t.rejects(assertMigrated(pool), /lacks 0002_build\.sql/, 'processes of this version wait');
    await backup`COMMIT`;
    backup.release();
    t.strictSame(await migrated, LATER);
    await appendAsFormer(former, 'sub_after');
    await appendAsFormer(former, 'sub_build', ", p_build => '{ci-1}'");
    t.equal((await listAsFormer(former)).length, 4);
    t.strictSame([...(await pool`SELECT id FROM submission WHERE build IS NOT NULL`)], [{ id: 'sub_build' }]);
    const [{ others } = { others: -1 }] = await pool<{ others: number }[]>`
    SELECT (SELECT count(*) FROM submission WHERE statement_version <> 1 OR salt IS NULL)
           + (SELECT count(*) FROM submission_statement) AS others`;
    t.equal(others, 0, 'statements are made of the rows');

    await pool`UPDATE submission_numbering SET since = now() - interval '1 hour'`;
    await appendAsFormer(former, 'sub_late');
    t.same(
      await pool`SELECT since > now() + interval '23 hours' AS later FROM submission_numbering`,
      [{ later: true }],
      'a process of the former version puts numbers off',
    );
    t.same(await pool`SELECT FROM submission WHERE project_number IS NOT NULL`, []);
    t.equal((await listAsFormer(former)).length, 5, 'and finds all');

    const FORMER_INDEXES = [
      ...[
        'submission_by_build',
        'submission_by_build_and_schema',
        'submission_by_project',
        'submission_by_schema',
      ],
      ...['submission_id', 'submission_of_project', 'submission_of_schema'],
    ];
    t.strictSame(await dropFormerIndexes(pool, 3_600_000), [], 'the former version may run for an hour');
    t.same(await pool`SELECT indexrelid::regclass FROM pg_index WHERE NOT indisvalid`, []);
    t.strictSame((await dropFormerIndexes(pool, 0)).sort(), FORMER_INDEXES);
    t.strictSame(await dropFormerIndexes(pool, 0), []);
    t.equal(await dumpWithoutFormer(pool), await dumpSchema((await openDatabase(t)).pool));
    await assertPartitioned(t, pool, former);
  },
);

/** The logs from before stay in the table that there was, and go on; new ones have partitions, also of former processes. */
async function assertPartitioned(t: Test, pool: Pool, former: Pool): Promise<void> {
  const partOf = async (id: string) => {
    const [row] = await pool`SELECT s.tableoid::regclass::text AS part FROM submission s WHERE s.id = ${id}`;
    return row?.part;
  };
  for (const id of ['sub_before', 'sub_meanwhile', 'sub_after', 'sub_other'])
    t.equal(await partOf(id), 'submission_former', id);
  const [log] = await former<{ id: number }[]>`
    INSERT INTO log (environment, epoch, origin, public_key) VALUES (1, 2, 'log-2', '') RETURNING id`;
  const id = log?.id ?? 0;
  await appendAsFormer(former, 'sub_epoch', '', id);
  t.equal(await partOf('sub_epoch'), `submission_${id}_0`);
  t.same(await listPartitions(pool, 1), []);
  t.same(await findUnprepared(pool), [{ logId: id, origin: 'log-2', hasRoom: true }]);
  t.same(await addSparePartitions(pool), [`submission_${id}_1`]);
  await pool`INSERT INTO project (id, name) VALUES ('prj', 'a test')`;
  await pool`UPDATE submission SET metadata = '{"a":1}' WHERE id IN ('sub_before', 'sub_epoch')`;
  t.same(
    await pool`SELECT changes FROM metadata_change`,
    [{ changes: 2 }],
    'triggers see rows of partitions',
  );
  t.same(await pool`SELECT log_id AS log FROM export_change ORDER BY 1`, [{ log: 1 }, { log: id }]);
}

t.test('logs without submissions get partitions, and the former table goes', async (t) => {
  const { pool } = await openFormer(t);
  await pool`INSERT INTO log (environment, epoch, origin, public_key) VALUES (1, 1, 'log', ''), (2, 1, 'test', '')`;
  await migrate(pool);
  t.same(
    [...(await pool`SELECT name FROM submission_partition ORDER BY 1`)],
    [{ name: 'submission_1_0' }, { name: 'submission_2_0' }],
  );
  t.same([...(await pool`SELECT to_regclass('submission_former') AS former`)], [{ former: null }]);
});

t.test('a long read of the table makes the migration fail; run again, it goes on where it was', async (t) => {
  const { url, pool } = await openFormer(t);
  await pool`INSERT INTO log (environment, epoch, origin, public_key) VALUES (1, 1, 'log', '')`;
  await appendAsFormer(pool, 'sub_before');
  const names = LATER.filter((name) => name < '0013_partitions');
  for (const name of names) {
    const [transaction = '', outside = ''] = sqlOf(name).split('\n-- Outside the transaction:\n');
    await pool.unsafe(transaction);
    for (const statement of outside.split(/;\n/)) await pool.unsafe(statement);
    await pool`INSERT INTO migration (name) VALUES (${name})`;
  }
  const reader = connectPool({ url, name: 'test', max: 1, statementTimeoutMs: 60_000, isPatient: true });
  t.teardown(() => reader.end({ timeout: 1 }));
  const reading = await reader.reserve();
  await reading`BEGIN`;
  await reading`SELECT FROM submission`;
  await t.rejects(migrate(pool), { code: '55P03' });
  await appendAsFormer(pool, 'sub_meanwhile');
  await reading`COMMIT`;
  reading.release();
  t.strictSame(await migrate(pool), LATER.slice(names.length));
  t.equal((await pool`SELECT FROM submission_former`).length, 2);
});

t.test('a migration that failed behind its transaction runs again', async (t) => {
  const { pool } = await openFormer(t);
  const [transaction = ''] = sqlOf('0002_build.sql').split('-- Outside the transaction:');
  await pool.begin((tx) => tx.unsafe(transaction));
  t.strictSame(await migrate(pool), LATER);
  t.equal(await dumpSchema(pool), await dumpSchema((await openDatabase(t)).pool));
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
  t.strictSame(ran.flat(), [FIRST, ...LATER]);
});

t.test(
  'Postgres collects no planner statistics of metadata, in which redacted values would remain',
  async (t) => {
    const { pool, submit, pipeline } = await openPipeline(t, []);
    await submit(20);
    await drain(pipeline);
    await pool`ANALYZE submission`;
    const columns = await pool<{ name: string; table: string }[]>`
    SELECT attname AS name, tablename AS "table" FROM pg_stats
    WHERE schemaname = 'public' AND tablename IN (SELECT name FROM submission_partition UNION SELECT 'submission')`;
    t.same([...new Set(columns.map(({ table }) => table))].sort(), ['submission', 'submission_1_0']);
    const names = columns.map(({ name }) => name);
    t.ok(names.includes('artifact_sha256'));
    for (const name of ['metadata', 'metadata_errors', 'attested_metadata', 'salt', 'build'])
      t.notOk(names.includes(name), name);
  },
);
