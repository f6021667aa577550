/** A page of a build reads its index, however many submissions have no build, and equals a full scan. */
import t from 'tap';
import type { SubmissionQuery } from '../../../src/server/attestations/lists/list-statement.js';
import { listSubmissions } from '../../../src/server/attestations/lists/submission-lists.js';
import { openPlanner } from '../../support/judging/plans.js';
import { isLong } from '../../support/long.js';
import { testDatabase } from '../../support/servers/shared-servers.js';

const WITHOUT = isLong ? 1_000_000 : 100_000;
/** Of two projects in turn, in one build that both name; every 1,000th of another schema. */
const WITH = 20_000;
const LIMIT = 51;
/** Of an index: a leaf in 5,000 has a build. */
const MOST_BYTES = 64 * 1024;

const planner = openPlanner(await testDatabase(t));
t.teardown(planner.close);
const { sql } = planner;

async function fill(from: number, count: number, build: string | null): Promise<void> {
  await sql`
    INSERT INTO submission (log_id, log_index, id, project_id, submitted_at, artifact_sha256, schema, metadata_state,
                            commitment, dsse_key_id, signature, leaf_hash, build)
    SELECT 1, i, 'sub_' || i, 'prj_' || i % 2, to_timestamp(i), '', CASE WHEN i % 1000 = 7 THEN 'rare' ELSE 'purl' END, 1,
           '', 1, '', '', CASE WHEN i % 5000 = 77 THEN 'few' ELSE ${build}::text END
    FROM generate_series(${from}::int, ${from + count - 1}::int) i`;
}

await sql`INSERT INTO log (environment, epoch, origin, public_key) VALUES (1, 1, 'log', '')`;
await fill(0, WITHOUT, null);

async function bytesOf(index: string): Promise<number> {
  const [row] = await sql<{ bytes: number }[]>`
      SELECT sum(pg_relation_size(relid))::bigint AS bytes FROM pg_partition_tree(${index}::regclass)`;
  return row?.bytes ?? 0;
}

t.test('submissions without a build have no entry in the indexes of builds', async (t) => {
  for (const index of ['submission_build_leaves', 'submission_build_schema_leaves'])
    t.ok((await bytesOf(index)) <= MOST_BYTES, index);
});

type Filter = Pick<SubmissionQuery, 'projectId' | 'schema' | 'build'>;

const list = ({ projectId, schema, build }: Filter, before?: SubmissionQuery['before']) =>
  listSubmissions(sql, {
    ...{ projectId, schema, build, logIds: [1], before, limit: LIMIT },
    ...{ status: undefined, submittedAfter: undefined, submittedBefore: undefined },
  });

const filters = ['prj_0', 'prj_1'].flatMap((projectId) =>
  ['few', 'many', 'none'].flatMap((build) =>
    [undefined, 'purl', 'rare', 'none'].map((schema): Filter => ({ projectId, schema, build })),
  ),
);

async function scan({ projectId, schema, build }: Filter): Promise<number[]> {
  const rows = await sql<{ place: number }[]>`
    SELECT log_index AS place FROM submission
    WHERE project_id || '' = ${projectId} AND build || '' = ${build ?? ''} AND schema || '' = coalesce(${schema ?? null}, schema)
    ORDER BY log_index DESC`;
  return rows.map(({ place }) => place);
}

for (const analyzed of [false, true]) {
  t.test(`a page of a build reads little more than it returns, analysed: ${analyzed}`, async (t) => {
    if (!analyzed) await fill(WITHOUT, WITH, 'many');
    else await sql`VACUUM (ANALYZE) submission`;
    for (const filter of filters) {
      const all = await scan(filter);
      for (const first of [0, all.length >> 1]) {
        const before = first > 0 ? { logId: 1, logIndex: all[first - 1] ?? 0 } : undefined;
        const { rows } = await list(filter, before);
        const what = JSON.stringify({ ...filter, before });
        t.same(
          rows.map(({ logIndex }) => logIndex),
          all.slice(first, first + LIMIT),
          what,
        );
        for (const planFor of ['these', 'any'] as const) {
          const plan = await planner.explain(() => list(filter, before), planFor);
          const index =
            filter.schema === undefined ? 'submission_build_leaves' : 'submission_build_schema_leaves';
          const isNarrow =
            plan.scans.some((scan) => scan.endsWith(` ${index}`)) &&
            plan.rows <= 3 * LIMIT &&
            plan.buffers <= 500;
          t.ok(isNarrow, `${what} ${planFor} ${JSON.stringify(plan)}`);
        }
      }
    }
  });
}

t.test('other lists do not read the indexes of builds', async (t) => {
  for (const schema of [undefined, 'purl', 'rare'])
    for (const planFor of ['these', 'any'] as const) {
      const plan = await planner.explain(() => list({ projectId: 'prj_0', schema }), planFor);
      t.notMatch(plan.scans.join(), /build/);
      t.ok(plan.rows <= 3 * LIMIT, JSON.stringify(plan));
    }
});
