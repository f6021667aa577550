/** Submissions with numbers in place of names, and those with names from before, are stored and found alike. */
import { generateKeyPairSync } from 'node:crypto';
import t, { type Test } from 'tap';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { addArtifactRun } from '../../../src/server/attestations/artifacts/artifact-runs.js';
import type { SubmissionQuery } from '../../../src/server/attestations/lists/list-statement.js';
import { listSubmissions } from '../../../src/server/attestations/lists/submission-lists.js';
import {
  type NewSubmission,
  SubmissionOutcome,
  sequenceSubmissions,
} from '../../../src/server/attestations/sequence/sequence-submissions.js';
import {
  createRowReader,
  listExportedRows,
} from '../../../src/server/attestations/submissions/exported-rows.js';
import { correctMetadata, lockMetadata } from '../../../src/server/attestations/submissions/metadata.js';
import { findSubmissions } from '../../../src/server/attestations/submissions/submissions.js';
import { connectPool, type Pool } from '../../../src/server/database/connect.js';
import { listArchivedRows } from '../../../src/server/exports/archive/archived-rows.js';
import { readLeafRows } from '../../../src/server/log/store/leaves.js';
import { testDatabase } from '../../support/servers/shared-servers.js';
import { makeRow } from '../../support/servers/submission-rows.js';
import { findTwins } from '../../support/twins.js';

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const spki = publicKey.export({ type: 'spki', format: 'der' });

/** A database with two logs, of which the processes of the version before have been replaced. */
async function openDatabase(t: Test): Promise<Pool> {
  const pool = connectPool({ url: await testDatabase(t), name: 'test', max: 4, statementTimeoutMs: 10_000 });
  t.teardown(() => pool.end({ timeout: 1 }));
  await pool`INSERT INTO log (environment, epoch, origin, public_key) VALUES (1, 1, 'log', ''), (1, 2, 'other', '')`;
  await pool`INSERT INTO project (id, name) VALUES ('prj_a', ''), ('prj_b', '')`;
  await pool`
    INSERT INTO webhook (id, project_id, environment, url, events, secret) VALUES ('whk', 'prj_a', 1, '', '{1}', '')`;
  return pool;
}

type Names = Pick<NewSubmission, 'projectId' | 'schema'> & { build?: string | null };

const rowOf = ({ projectId, schema, build = null }: Names): NewSubmission => ({
  ...makeRow(privateKey, 1, spki, { projectId, schema }),
  ...{ apiKeyId: `key_${projectId}`, build },
});

async function append(t: Test, pool: Pool, rows: NewSubmission[], logId = 1): Promise<void> {
  const results = await sequenceSubmissions(pool, logId, rows, false, 1_000);
  t.ok(results.every(({ outcome }) => outcome === SubmissionOutcome.STORED));
}

/** Whether submissions get numbers, as from a day after the upgrade on. */
async function setNumbering(pool: Pool, isOn: boolean): Promise<void> {
  await pool`UPDATE submission_numbering SET since = ${isOn ? '-infinity' : 'infinity'}::text::timestamptz`;
}

async function countNumbered(pool: Pool, rows: readonly NewSubmission[]): Promise<number> {
  const [row] = await pool<{ count: number }[]>`
    SELECT count(project_number) AS count FROM submission WHERE id = ANY(${rows.map(({ id }) => id)})`;
  return row?.count ?? -1;
}

const list = async (pool: Pool, query: Partial<SubmissionQuery> & { projectId: string }) => {
  const none = {
    schema: undefined,
    status: undefined,
    submittedAfter: undefined,
    submittedBefore: undefined,
  };
  const { rows } = await listSubmissions(pool, {
    ...{ logIds: [1], before: undefined, limit: 51 },
    ...none,
    ...query,
  });
  return rows.map(({ id }) => id).sort();
};

async function listExported(pool: Pool, projectId: string, schema: string | null): Promise<string[]> {
  const range = { projectId, logId: 1, firstIndex: 0, endIndex: 1_000, schema };
  const next = createRowReader(await listExportedRows(pool, range, 1_000));
  const ids: string[] = [];
  for (let row = next(); row !== undefined; row = next()) {
    if (schema !== null && row.schema !== schema) throw new Error(`${row.id} has the schema ${row.schema}`);
    ids.push(row.id);
  }
  return ids.sort();
}

async function listDelivered(pool: Pool, projectId: string): Promise<string[]> {
  await pool`
    INSERT INTO webhook_range (webhook_id, log_id, tree_size, transition, next_index, last_index)
    VALUES ('whk', 1, 1000, 2, 0, 999)`;
  const ids = Array.from({ length: 100 }, (_, i) => `dlv_${projectId}_${i}`);
  const rows = await pool<{ id: string }[]>`
    SELECT submission_id AS id FROM make_webhook_deliveries('whk', ${projectId}, now(), 1000, 100, ${ids})`;
  await pool`DELETE FROM webhook_delivery`;
  return rows.map(({ id }) => id).sort();
}

/** Checks each way to find submissions against all that there are. */
async function assertFound(t: Test, pool: Pool, rows: readonly NewSubmission[]): Promise<void> {
  const idsOf = (names: Partial<Names>) =>
    rows
      .filter((row) => Object.entries(names).every(([name, value]) => row[name as keyof Names] === value))
      .map(({ id }) => id)
      .sort();
  const found = await findSubmissions(
    pool,
    rows.map(({ id }) => id),
  );
  t.same(
    found.map(({ id, projectId, schema }) => [id, projectId, schema]).sort(),
    rows.map(({ id, projectId, schema }) => [id, projectId, schema]).sort(),
    'by id',
  );
  const leaves = await readLeafRows(pool, 1, 0, 1_000);
  t.same(
    leaves.map(({ id, projectId, schema }) => [id, projectId, schema]),
    rows.map(({ id, projectId, schema }) => [id, projectId, schema]),
    'as leaves of the public log',
  );
  t.same(
    (await listArchivedRows(pool, 1, 0, rows.length)).projects,
    rows.map(({ projectId }) => projectId),
  );
  const distinct = <T>(values: T[]) => [...new Set(values)];
  for (const projectId of distinct(rows.map((row) => row.projectId))) {
    t.same(await list(pool, { projectId }), idsOf({ projectId }), `list ${projectId}`);
    t.same(await listExported(pool, projectId, null), idsOf({ projectId }), `export ${projectId}`);
    t.same(await listDelivered(pool, projectId), idsOf({ projectId }), `webhook ${projectId}`);
    for (const schema of distinct(rows.map((row) => row.schema))) {
      const names = { projectId, schema };
      t.same(await list(pool, names), idsOf(names), `list ${projectId} ${schema}`);
      t.same(await listExported(pool, projectId, schema), idsOf(names), `export ${projectId} ${schema}`);
      t.same(await list(pool, { ...names, build: 'ci-1' }), idsOf({ ...names, build: 'ci-1' }));
    }
    t.same(await list(pool, { projectId, build: 'ci-1' }), idsOf({ projectId, build: 'ci-1' }));
    for (const row of rows) {
      const artifactSha256 = Buffer.from(row.artifactSha256, 'hex');
      const own = row.projectId === projectId ? [row.id] : [];
      t.same(await list(pool, { projectId, artifactSha256 }), own, 'by artifact');
      t.same(await list(pool, { projectId, artifactSha256, schema: 'another' }), []);
      const owner = { projectId, environment: Environment.LIVE };
      const locked = await pool.begin((tx) => lockMetadata(tx, row.id, owner));
      t.equal(locked?.schema, own.length > 0 ? row.schema : undefined, 'locked by its project alone');
    }
  }
}

const NAMES: Names[] = [
  { projectId: 'prj_a', schema: 'purl' },
  { projectId: 'prj_a', schema: 'purl', build: 'ci-1' },
  { projectId: 'prj_a', schema: 'eval.v1', build: 'ci-1' },
  { projectId: 'prj_b', schema: 'purl', build: 'ci-1' },
  { projectId: 'prj_b', schema: 'eval.v1' },
];

t.test(
  'a new database stores numbers; an upgraded one names, until its processes are replaced',
  async (t) => {
    const pool = await openDatabase(t);
    const [numbered, named, again] = [NAMES.map(rowOf), NAMES.map(rowOf), NAMES.map(rowOf)];
    await append(t, pool, numbered);
    t.equal(await countNumbered(pool, numbered), NAMES.length, 'a new database has no processes of before');
    await setNumbering(pool, false);
    await append(t, pool, named);
    t.equal(await countNumbered(pool, named), 0);
    await setNumbering(pool, true);
    await append(t, pool, again);
    t.equal(await countNumbered(pool, again), NAMES.length);
    t.same(await pool`SELECT project_id, schema FROM submission_name ORDER BY project_id, schema`, [
      ...['prj_a', 'prj_b'].flatMap((project_id) =>
        ['', 'eval.v1', 'purl'].map((schema) => ({ project_id, schema })),
      ),
    ]);
    await assertFound(t, pool, [...numbered, ...named, ...again]);
  },
);

t.test('names with one hash are not taken for each other: the second has no number', async (t) => {
  const pool = await openDatabase(t);
  const [first, second] = await findTwins(pool, 'prj_');
  const [one, other] = (await findTwins(pool, `${first}\n`)).map((name) => name.split('\n')[1] as string);
  const names = [
    ...[first, second].map((projectId) => ({ projectId, schema: 'purl', build: 'ci-1' })),
    ...[one, other].map((schema) => ({ projectId: first, schema: schema as string, build: 'ci-1' })),
  ];
  const rows = names.map(rowOf);
  for (const row of rows) await append(t, pool, [row]);
  t.equal(await countNumbered(pool, rows), 2, 'of the first project and of its first schema');
  const together = names.map(rowOf);
  await append(t, pool, together);
  t.equal(await countNumbered(pool, together), 0, 'in one call');
  await assertFound(t, pool, [...rows, ...together]);
});

t.test('a correction gives a row the names of the new schema, and is counted for its project', async (t) => {
  const pool = await openDatabase(t);
  const rows = NAMES.map(rowOf);
  await append(t, pool, rows);
  const [row] = rows as [NewSubmission];
  await pool.begin((tx) => correctMetadata(tx, row.id, { schema: 'eval.v1', canonical: '{}' }));
  const [found] = await findSubmissions(pool, [row.id]);
  t.match(found, { projectId: 'prj_a', schema: 'eval.v1', attestedSchema: 'purl', metadata: '{}' });
  t.match(await readLeafRows(pool, 1, 0, 1), [{ schema: 'purl' }], 'the leaf has what was signed');
  t.same(await list(pool, { projectId: 'prj_a', schema: 'eval.v1' }), [row.id, rows[2]?.id].sort());
  t.same(await list(pool, { projectId: 'prj_a', schema: 'purl' }), [rows[1]?.id]);
  await pool`UPDATE submission SET metadata = '{}' WHERE log_index = 3`;
  t.same(await pool`SELECT project_id AS id, changes FROM metadata_change ORDER BY 1`, [
    { id: 'prj_a', changes: 1 },
    { id: 'prj_b', changes: 1 },
  ]);
  t.same(await pool`SELECT project_id AS id FROM export_change ORDER BY first_index`, [
    { id: 'prj_a' },
    { id: 'prj_b' },
  ]);
});

t.test('calls of two logs that bring the same new names do not block each other for good', async (t) => {
  const pool = await openDatabase(t);
  for (let round = 0; round < 10; round++) {
    const schemas = Array.from({ length: 40 }, (_, i) => `round-${round}.${i}`);
    const [ascending, descending] = [schemas, schemas.toReversed()].map((names) =>
      names.map((schema) => rowOf({ projectId: 'prj_a', schema })),
    ) as [NewSubmission[], NewSubmission[]];
    await Promise.all([
      append(t, pool, ascending, 1),
      append(
        t,
        pool,
        descending.map((row) => ({ ...row, apiKeyId: 'key_other' })),
        2,
      ),
    ]);
    t.equal(await countNumbered(pool, [...ascending, ...descending]), 80);
  }
});

t.test('an artifact is found by the index of runs in both forms of rows', async (t) => {
  const pool = await openDatabase(t);
  const rows = Array.from({ length: 1_024 }, (_, i) => rowOf({ projectId: `prj_${i % 2}`, schema: 'purl' }));
  await append(t, pool, rows.slice(0, 500));
  await setNumbering(pool, false);
  await append(t, pool, rows.slice(500));
  t.equal(await addArtifactRun(pool, 1), true);
  for (const i of [0, 1, 499, 500, 1_022, 1_023]) {
    const row = rows[i] as NewSubmission;
    const artifactSha256 = Buffer.from(row.artifactSha256, 'hex');
    t.same(await list(pool, { projectId: `prj_${i % 2}`, artifactSha256 }), [row.id]);
    t.same(await list(pool, { projectId: `prj_${(i + 1) % 2}`, artifactSha256 }), []);
  }
});

t.test('a row has either names or numbers', async (t) => {
  const pool = await openDatabase(t);
  await append(t, pool, NAMES.map(rowOf));
  for (const change of [
    { schema: 'purl' },
    { project_id: 'prj_a' },
    { schema_number: null },
    { project_number: null },
  ])
    await t.rejects(pool`UPDATE submission SET ${pool(change)} WHERE log_index = 0`, { code: '23514' });
});
