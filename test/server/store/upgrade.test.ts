/** Upgrades of databases of released versions: their data is kept, and their processes keep working. */
import { readdirSync, readFileSync } from 'node:fs';
import type { JSONValue } from 'postgres';
import t, { type Test } from 'tap';
import { ulid } from 'ulid';
import { MetadataState } from '../../../gen/attestation/v1/attestations_pb.js';
import { fromHex } from '../../../src/proof/bytes/encoding.js';
import { byteaArray, connectPool, type Pool } from '../../../src/server/store/database/connect.js';
import { migrate } from '../../../src/server/store/database/migrate.js';
import { keepAuditPartitions, listAuditEntries } from '../../../src/server/store/projects/audit.js';
import {
  type NewSubmission,
  type SequencedRow,
  SubmissionOutcome,
  sequenceSubmissions,
} from '../../../src/server/store/submissions/sequence-submissions.js';
import { assertConsistent } from '../../support/judging/consistent.js';
import { drain, makePipeline, makeWitness, type TestWitness } from '../../support/pipeline.js';
import { keyed } from '../../support/servers/sequencer.js';
import { testDatabase } from '../../support/servers/shared-servers.js';
import { acknowledge } from '../../support/servers/submission-rows.js';

/** The newest migration of each release. */
const RELEASED = ['0001_log.sql', '0005_webhooks.sql'];
const MIGRATIONS = new URL('../../../src/server/store/migrations/', import.meta.url);

/** A database as a release left it. */
async function openReleased(t: Test, newest: string): Promise<{ url: string; pool: Pool }> {
  const url = await testDatabase(t, { empty: true });
  const pool = connectPool({ url, name: 'test', max: 2, statementTimeoutMs: 60_000 });
  t.teardown(() => pool.end({ timeout: 1 }));
  await pool`CREATE TABLE migration (name text PRIMARY KEY, ran_at timestamptz NOT NULL DEFAULT now())`;
  const names = readdirSync(MIGRATIONS).filter((name) => name.endsWith('.sql') && name <= newest);
  for (const name of names.sort()) {
    await pool.unsafe(readFileSync(new URL(name, MIGRATIONS), 'utf8'));
    await pool`INSERT INTO migration (name) VALUES (${name})`;
  }
  return { url, pool };
}

/** What a starting process puts into the tables. */
const SET_UP = ['log', 'policy', 'dsse_key', 'timestamp_authority', 'witness_state'];

/**
 * A database as a release left it after its processes had started, and what makes rows for it. This version sets up a
 * database of its own; the rows are copied, without the columns that the release did not have.
 */
async function installReleased(t: Test, release: string, witnesses: readonly TestWitness[] = []) {
  const { url, pool } = await openReleased(t, release);
  const dir = t.testdir();
  const scene = await makePipeline(t, { databaseUrl: await testDatabase(t), witnesses, dir });
  for (const table of SET_UP) {
    const known = await pool<{ name: string }[]>`
      SELECT column_name AS name FROM information_schema.columns
      WHERE table_schema = 'public' AND table_name = ${table}`;
    const names = known.map(({ name }) => name);
    const rows = await scene.pool<
      { row: JSONValue }[]
    >`SELECT to_jsonb(s) AS row FROM ${scene.pool(table)} s`;
    for (const { row } of rows) {
      await pool`
        INSERT INTO ${pool(table)} (${pool(names)}) OVERRIDING SYSTEM VALUE
        SELECT ${pool(names)} FROM jsonb_populate_record(NULL::${pool(table)}, ${pool.json(row)})`;
    }
  }
  const open = () => makePipeline(t, { databaseUrl: url, witnesses, dir, accept: acceptReleased });
  return { url, pool, scene, open };
}

/** The outcomes of `accept_submissions`, by number. */
const RELEASED_OUTCOMES = ['STORED', 'REPLAYED', 'KEY_REUSED', 'BUSY', 'LIMITED'] as const;

type ReleasedRow = { outcome: number; resource_id: string | null; log_index: number | null };

/** Stores rows as processes of every release do. */
async function acceptReleased(
  pool: Pool,
  logId: number,
  rows: readonly NewSubmission[],
  again: boolean,
  retentionMs: number,
): Promise<SequencedRow[]> {
  const bytes = (pick: (row: NewSubmission) => string | null) =>
    byteaArray(
      pool,
      rows.map((row) => {
        const hex = pick(row);
        return hex === null ? null : fromHex(hex);
      }),
    );
  const stored = await pool<ReleasedRow[]>`
    SELECT * FROM accept_submissions(${logId}, ${again}, ${retentionMs}, ${rows.map((row) => row.id)},
      ${rows.map((row) => row.projectId)}, ${rows.map((row) => row.apiKeyId)},
      ${rows.map((row) => row.submittedAtMs)}, ${bytes((row) => row.artifactSha256)},
      ${rows.map((row) => row.schema)}, ${rows.map((row) => row.metadata)},
      ${rows.map((row) => (row.metadataErrors === null ? MetadataState.VALID : MetadataState.INVALID))}, ${rows.map((row) => row.metadataErrors)},
      ${bytes((row) => row.salt)}, ${bytes((row) => row.commitment)}, ${rows.map((row) => row.dsseKeyId)},
      ${bytes((row) => row.signature)}, ${bytes((row) => row.leafHash)},
      ${rows.map((row) => row.idempotency?.key ?? null)},
      ${bytes((row) => row.idempotency?.requestHash ?? null)}, ${rows.map((row) => row.limits.perSecond)},
      ${rows.map((row) => row.limits.perHour)}, ${rows.map((row) => row.limits.perDay)})`;
  return stored.map(({ outcome, resource_id, log_index }) => ({
    outcome: SubmissionOutcome[RELEASED_OUTCOMES[outcome] ?? 'STORED'],
    resourceId: resource_id,
    logIndex: log_index,
    use: undefined,
  }));
}

type Column = { place: string; type: string; optional: boolean };

/** The columns, keys and functions that a process's statements rely on. */
async function describe(pool: Pool) {
  const columns = await pool<Column[]>`
    SELECT table_name || '.' || column_name AS place, data_type || ' ' || is_nullable AS type,
           is_nullable = 'YES' OR column_default IS NOT NULL OR is_identity = 'YES' OR is_generated = 'ALWAYS' AS optional
    FROM information_schema.columns WHERE table_schema = 'public'`;
  const keys = await pool<{ key: string }[]>`
    SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) AS key
    FROM pg_constraint WHERE contype IN ('p', 'u') AND connamespace = 'public'::regnamespace`;
  const functions = await pool<{ signature: string }[]>`
    SELECT oid::regprocedure || ' returns ' || pg_get_function_result(oid) AS signature
    FROM pg_proc WHERE pronamespace = 'public'::regnamespace`;
  return {
    columns: new Map(columns.map((column) => [column.place, column])),
    keys: keys.map(({ key }) => key),
    functions: functions.map(({ signature }) => signature),
  };
}

for (const release of RELEASED) {
  t.test(`submissions made under ${release} are witnessed after the upgrade`, async (t) => {
    const { pool, scene, open } = await installReleased(t, release, [await makeWitness(t, 'tsa')]);
    const rows = scene.makeRows(20);
    const stored = await acceptReleased(pool, scene.logId, rows, false, 86_400_000);
    const acknowledged = rows.map((row, i) => acknowledge(row, stored[i]?.logIndex ?? -1));
    const ran = await migrate(pool);
    t.not(ran.length, 0);
    const upgraded = await open();
    acknowledged.push(...(await upgraded.submit(20)));
    await drain(upgraded.pipeline);
    const seen = await assertConsistent(t, { pool, acknowledged, register: upgraded.register });
    t.match(seen, { leaves: 40, verified: 40 });
  });

  t.test(
    `processes of ${release} get the same outcomes after the upgrade, beside those of this version`,
    async (t) => {
      const { url, pool, scene } = await installReleased(t, release);
      const rows = [
        ...scene.makeRows(1, keyed('first')),
        ...scene.makeRows(1, { ...keyed('held'), apiKeyId: 'key_other' }),
        ...scene.makeRows(3, {
          apiKeyId: 'key_limited',
          limits: { perSecond: 1e9, perHour: 2, perDay: 1e9 },
        }),
      ];
      const isNew = (row: NewSubmission) => ({ ...row, id: `sub_${ulid()}` });
      const holder = connectPool({ url, name: 'test', max: 1, statementTimeoutMs: 60_000 });
      t.teardown(() => holder.end({ timeout: 1 }));
      await holder`SELECT pg_advisory_lock(hashtextextended('key_other held', 0))`;
      const run = async (accept: typeof sequenceSubmissions, more: readonly NewSubmission[]) =>
        (await accept(pool, scene.logId, more, false, 86_400_000)).map(({ outcome }) => outcome);
      const { STORED, REPLAYED, KEY_REUSED, BUSY, LIMITED } = SubmissionOutcome;
      t.same(await run(acceptReleased, rows), [STORED, BUSY, STORED, STORED, LIMITED]);
      await migrate(pool);
      const later = [...rows.map(isNew), ...scene.makeRows(1, keyed('first', 'another'))];
      for (const accept of [acceptReleased, sequenceSubmissions]) {
        const outcomes = [REPLAYED, BUSY, LIMITED, LIMITED, LIMITED];
        t.same(await run(accept, later.slice(0, 5)), outcomes);
        t.same(await run(accept, later.slice(5)), [KEY_REUSED]);
        t.same(await run(accept, scene.makeRows(1)), [STORED]);
        const known = await accept(pool, scene.logId, rows.slice(0, 1), true, 86_400_000);
        t.match(known, [{ outcome: STORED, resourceId: rows[0]?.id, logIndex: 0 }]);
      }
    },
  );

  t.test(`columns, keys and functions of ${release} exist after the upgrade`, async (t) => {
    const { pool } = await openReleased(t, release);
    const old = await describe(pool);
    await migrate(pool);
    const now = await describe(pool);
    for (const { place, type } of old.columns.values()) t.equal(now.columns.get(place)?.type, type, place);
    const tables = new Set([...old.columns.keys()].map((place) => place.split('.')[0]));
    const added = [...now.columns.values()].filter(
      ({ place }) => !old.columns.has(place) && tables.has(place.split('.')[0]),
    );
    for (const { place, optional } of added) t.ok(optional, `${place} may be left out of an INSERT`);
    for (const key of old.keys) t.ok(now.keys.includes(key), key);
    for (const signature of old.functions) t.ok(now.functions.includes(signature), signature);
  });
}

t.test('planner statistics of metadata are deleted, and not collected any more', async (t) => {
  const { pool, scene } = await installReleased(t, '0001_log.sql');
  await acceptReleased(pool, scene.logId, scene.makeRows(20), false, 86_400_000);
  const known = async () => {
    await pool`ANALYZE submission`;
    return (
      await pool`
      SELECT FROM pg_stats WHERE schemaname = 'public' AND tablename = 'submission'
        AND attname IN ('metadata', 'metadata_errors', 'attested_metadata', 'salt')`
    ).length;
  };
  t.ok((await known()) > 0);
  await migrate(pool);
  t.equal(await known(), 0);
});

t.test('audit entries are kept, and the version before keeps reading and writing them', async (t) => {
  const { pool } = await openReleased(t, '0005_webhooks.sql');
  const now = new Date();
  const ids = [0, 1, 2, 3, 4].map((n) => `aud_${ulid(now.getTime() + n)}`);
  const id = (n: number) => ids[n] ?? '';
  // As the release before writes and reads them.
  const write = (n: number) => pool`
    INSERT INTO audit_entry (id, project_id, actor_kind, actor_id, action, resource_id, request_id, detail)
    VALUES (${id(n)}, NULL, 1, 'operator', 1, 'a resource', NULL, ${'{"n":1}'}::text::jsonb)`;
  const read = async () =>
    (await pool`SELECT id FROM audit_entry WHERE resource_id = 'a resource' ORDER BY id`).map(
      (row) => row.id,
    );
  for (const n of [1, 2]) await write(n);
  const before = await pool`SELECT * FROM audit_entry ORDER BY id`;
  await migrate(pool);
  t.strictSame(await pool`SELECT * FROM audit_entry ORDER BY id`, before);
  await write(3);
  t.strictSame(await read(), [1, 2, 3].map(id), 'before months are added');
  await keepAuditPartitions(pool, 400 * 86_400_000, now);
  await write(4);
  t.strictSame(await read(), [1, 2, 3, 4].map(id), 'and after');
  const query = { projectId: undefined, action: undefined, after: undefined, before: undefined };
  const listed = await listAuditEntries(pool, {
    ...query,
    resourceId: 'a resource',
    belowId: undefined,
    limit: 9,
  });
  t.strictSame(
    listed.map((entry) => entry.id),
    [4, 3, 2, 1].map(id),
  );
  await t.rejects(pool`DELETE FROM audit_entry`);
  await t.rejects(write(1), 'an id is given once');
});

t.test('a database of a newer version is rejected and not changed', async (t) => {
  const url = await testDatabase(t);
  const pool = connectPool({ url, name: 'test', max: 2, statementTimeoutMs: 60_000 });
  t.teardown(() => pool.end({ timeout: 1 }));
  await pool`INSERT INTO migration (name) VALUES ('9999_later.sql')`;
  await t.rejects(migrate(pool), /newer version \(it has 9999_later\.sql\)/);
});

t.test('two processes that upgrade at once run each migration once', async (t) => {
  const { url, pool } = await openReleased(t, '0001_log.sql');
  const other = connectPool({ url, name: 'test', max: 2, statementTimeoutMs: 60_000 });
  t.teardown(() => other.end({ timeout: 1 }));
  const ran = await Promise.all([migrate(pool), migrate(other)]);
  t.equal(new Set(ran.flat()).size, ran.flat().length);
  t.not(ran.flat().length, 0);
});
