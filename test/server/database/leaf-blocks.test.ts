/** The indexes of lists stay small, and a page equals a full scan, whether the former indexes are there or not. */
import t, { type Test } from 'tap';
import { listSubmissions } from '../../../src/server/attestations/lists/submission-lists.js';
import {
  listExportedRows,
  logIndexesOf,
} from '../../../src/server/attestations/submissions/exported-rows.js';
import type { Sql } from '../../../src/server/database/connect.js';
import { openPlanner } from '../../support/judging/plans.js';
import { testDatabase } from '../../support/servers/shared-servers.js';
import { findTwins } from '../../support/twins.js';

const ROWS = 100_000;
const LIMIT = 51;
/** Of an index with a key for 5 to 16 leaves, and 6 bytes for each. */
const MOST_BYTES_A_ROW = 17;
const FORMER = {
  submission_by_project: '(project_id, log_id, log_index)',
  submission_by_schema: '(schema, project_id, log_id, log_index)',
};
const INDEXES = ['submission_project_leaves', 'submission_schema_leaves'];

const planner = openPlanner(await testDatabase(t));
t.teardown(planner.close);
const { sql } = planner;

/** Two projects with the same key in the indexes. */
const [FIRST, SECOND] = await findTwins(sql, 'prj_');
const LARGE = 'prj_large';

/** One project has all leaves but a few at the end, of two projects in turn. */
await sql`INSERT INTO log (environment, epoch, origin, public_key) VALUES (1, 1, 'log', '')`;
await sql`
  INSERT INTO submission (log_id, log_index, id, project_id, submitted_at, artifact_sha256, schema, metadata_state,
                          commitment, dsse_key_id, signature, leaf_hash, metadata)
  SELECT 1, i, 'sub_' || i, CASE WHEN i < ${ROWS - 300} THEN ${LARGE} WHEN i % 2 = 0 THEN ${FIRST} ELSE ${SECOND} END,
         to_timestamp(i), sha256(int8send(i)), CASE WHEN i % 3 = 0 THEN 'rare' ELSE 'purl' END, 1, '', 1, '', '', '{}'
  FROM generate_series(0, ${ROWS - 1}) i`;

const NONE = { status: undefined, submittedAfter: undefined, submittedBefore: undefined };

t.test('an index of lists takes few bytes a row of a project that has most leaves', async (t) => {
  for (const index of INDEXES) {
    const [row] = await sql<{ bytes: number }[]>`
      SELECT sum(pg_relation_size(relid))::bigint AS bytes FROM pg_partition_tree(${index}::regclass)`;
    t.ok((row?.bytes ?? Number.POSITIVE_INFINITY) <= MOST_BYTES_A_ROW * ROWS, `${index}: ${row?.bytes}`);
  }
});

type Filter = { projectId: string; schema: string | undefined };

const filters = [LARGE, FIRST, SECOND, 'prj_none'].flatMap((projectId) =>
  [undefined, 'purl', 'rare', 'none'].map((schema): Filter => ({ projectId, schema })),
);

async function scan({ projectId, schema }: Filter): Promise<number[]> {
  const rows = await sql<{ place: number }[]>`
    SELECT log_index AS place FROM submission
    WHERE project_id || '' = ${projectId} AND schema || '' = coalesce(${schema ?? null}, schema)
    ORDER BY log_index DESC`;
  return rows.map(({ place }) => place);
}

/** Checks the page of a list that begins behind so many rows, and how it is read. */
async function checkPage(t: Test, filter: Filter, all: readonly number[], first: number): Promise<void> {
  const before = first > 0 ? { logId: 1, logIndex: all[first - 1] ?? 0 } : undefined;
  const what = JSON.stringify({ ...filter, before });
  const list = () => listSubmissions(sql, { ...filter, logIds: [1], before, limit: LIMIT, ...NONE });
  const { rows } = await list();
  t.same(
    rows.map(({ logIndex }) => logIndex),
    all.slice(first, first + LIMIT),
    what,
  );
  const index = INDEXES[filter.schema === undefined ? 0 : 1];
  for (const planFor of ['these', 'any'] as const) {
    const plan = await planner.explain(list, planFor);
    const isNarrow = plan.rows <= 6 * LIMIT && plan.scans.includes(`Index Scan ${index}`);
    t.ok(isNarrow, `${what} ${planFor} ${JSON.stringify(plan)}`);
  }
}

for (const hasFormer of [false, true]) {
  t.test(`a page reads little more than it returns, former indexes: ${hasFormer}`, async (t) => {
    for (const [name, columns] of hasFormer ? Object.entries(FORMER) : [])
      await sql.unsafe(`CREATE INDEX ${name} ON submission ${columns}`);
    await sql`VACUUM (ANALYZE) submission`;
    for (const filter of filters) {
      const all = await scan(filter);
      for (const first of [0, all.length >> 1]) await checkPage(t, filter, all, first);
    }
  });
}

t.test("an export's range is read in the order of the log, of its project and schema alone", async (t) => {
  const range = { projectId: FIRST, logId: 1, firstIndex: ROWS - 301, endIndex: ROWS - 10 };
  for (const schema of [null, 'rare']) {
    const wanted = Array.from({ length: 291 }, (_, i) => ROWS - 301 + i)
      .filter((i) => i >= ROWS - 300 && i % 2 === 0 && (schema === null || i % 3 === 0))
      .slice(0, 70);
    const read = () => listExportedRows(sql as unknown as Sql, { ...range, schema }, 70);
    t.same(logIndexesOf(await read()), wanted);
    for (const planFor of ['these', 'any'] as const) {
      const plan = await planner.explain(read, planFor);
      t.ok(plan.rows <= 500, JSON.stringify(plan));
    }
  }
});
