import t from 'tap';
import type { SubmissionQuery } from '../../../src/server/attestations/lists/list-statement.js';
import { listSubmissions } from '../../../src/server/attestations/lists/submission-lists.js';
import { listProjectBatches } from '../../../src/server/log/store/batches.js';
import { listLogSizes } from '../../../src/server/log/store/log-sizes.js';
import { openPlanner } from '../../support/judging/plans.js';
import { testDatabase } from '../../support/servers/shared-servers.js';

/** Leaves. Every project and every schema but the first has few. */
const LEAVES = 150_000;
const LEAVES_PER_BATCH = 100;
const [FIRST_FAILED, FIRST_WITNESSED_AGAIN, FIRST_PARTIAL, FIRST_SEALED, FIRST_UNSEALED] = [
  30_000, 38_000, 120_000, 140_000, 149_600,
];
const START_MS = Date.UTC(2026, 0, 1);
const [QUEUED, WITNESSED, PARTIAL, FAILED] = [1, 2, 3, 4];
const LIMIT = 51;
/** Of the times' disorder: 2 s of a leaf each 10 ms. */
const LEAVES_OUT_OF_ORDER = 200;
/** Leaves per row of time bounds. */
const STRETCH = 256;

const url = await testDatabase(t);
const planner = openPlanner(url);
t.teardown(planner.close);
const { sql } = planner;
await fill();

/**
 * A log with a leaf each 10 ms, whose times are up to 2 s out of order: witnessed but for a stretch of failed batches
 * and one of partial ones, then sealed ones, then leaves that are in no batch.
 */
async function fill(): Promise<void> {
  await sql`
    INSERT INTO log (environment, epoch, origin, public_key)
    SELECT 1, epoch, 'log ' || epoch, '' FROM generate_series(1, 2) epoch`;
  await sql`
    INSERT INTO submission (log_id, log_index, id, project_id, submitted_at, artifact_sha256, schema, metadata_state,
                            commitment, dsse_key_id, signature, leaf_hash)
    SELECT 1, i, 'sub_' || lpad(i::text, 26, '0'),
           CASE WHEN i % 20011 = 7 THEN 'prj_few' WHEN i % 7 = 3 THEN 'prj_other' || i % 500 ELSE 'prj_many' END,
           to_timestamp(${START_MS / 1000}) + (i * 10 + (i * 7919) % 2000) * interval '1 millisecond', '',
           CASE WHEN i % 30011 = 5 THEN 'rare' WHEN i BETWEEN 100000 AND 101000 THEN 'once' ELSE 'purl' END,
           1, '', 1, '', ''
    FROM generate_series(0, ${LEAVES - 1}) i`;
  await sql`
    INSERT INTO batch (log_id, tree_size, id, first_index, root_hash, note, policy_version, sealed_at, deadline_at,
                       registered_at, status)
    SELECT 1, i + ${LEAVES_PER_BATCH}, 'btc_' || i, i, '', '', 1, now(), now(), now(),
           CASE WHEN i >= ${FIRST_SEALED} THEN 1 WHEN i >= ${FIRST_PARTIAL} THEN ${PARTIAL}::int
                WHEN i >= ${FIRST_FAILED} AND i < ${FIRST_WITNESSED_AGAIN} THEN ${FAILED}::int ELSE ${WITNESSED}::int END
    FROM generate_series(0, ${FIRST_UNSEALED - LEAVES_PER_BATCH}, ${LEAVES_PER_BATCH}) i`;
  await sql`
    INSERT INTO batch_content (log_id, tree_size, project_id, schema, submissions, first_index, last_index)
    SELECT 1, (log_index / ${LEAVES_PER_BATCH}::int + 1) * ${LEAVES_PER_BATCH}::int, project_id, schema, count(*),
           min(log_index), max(log_index)
    FROM submission WHERE log_index < ${FIRST_UNSEALED} GROUP BY 1, 2, 3, 4`;
  // Of another log, which nobody seals.
  await sql`
    INSERT INTO tail_time (log_id, end_index, first_index, earliest, latest)
    SELECT 3, i * 1024 + 1024, i * 1024, now(), now() FROM generate_series(0, 9999) i`;
  await sql`VACUUM (ANALYZE)`;
}

const at = (share: number) => new Date(START_MS + LEAVES * 10 * share);
const schemas = [undefined, 'purl', 'rare', 'once', 'none'];
const statuses = [undefined, QUEUED, WITNESSED, PARTIAL, FAILED];
const windows: Pick<SubmissionQuery, 'submittedAfter' | 'submittedBefore'>[] = [
  [undefined, undefined],
  [at(0.98), undefined],
  [undefined, at(0.02)],
  [at(0.5), at(0.5004)],
  [at(0.1), at(0.9)],
  [undefined, at(-1)],
  [at(2), undefined],
].map(([submittedAfter, submittedBefore]) => ({ submittedAfter, submittedBefore }));
const queries = ['prj_many', 'prj_few'].flatMap((projectId) =>
  schemas.flatMap((schema) =>
    statuses.flatMap((status) =>
      windows.map((window): SubmissionQuery => {
        const logIds = [2, 1];
        return { projectId, logIds, schema, status, ...window, before: undefined, limit: LIMIT };
      }),
    ),
  ),
);

type Leaf = { place: number; project: string; schema: string; atMs: number };
const leaves = await sql<Leaf[]>`
  SELECT log_index AS place, project_id AS project, schema, (extract(epoch FROM submitted_at) * 1000)::bigint AS "atMs"
  FROM submission ORDER BY log_index DESC`;

/** The status of the leaf at an index, as the log was filled. */
function statusAt(place: number): number {
  if (place >= FIRST_SEALED) return QUEUED;
  if (place >= FIRST_PARTIAL) return PARTIAL;
  return place >= FIRST_FAILED && place < FIRST_WITNESSED_AGAIN ? FAILED : WITNESSED;
}

/** The positions of all leaves that match the query, newest first. */
function expected({ projectId, schema, status, submittedAfter, submittedBefore }: SubmissionQuery): number[] {
  const after = submittedAfter?.getTime() ?? Number.NEGATIVE_INFINITY;
  const until = submittedBefore?.getTime() ?? Number.POSITIVE_INFINITY;
  return leaves
    .filter(
      (leaf) =>
        leaf.project === projectId &&
        (schema ?? leaf.schema) === leaf.schema &&
        (status ?? statusAt(leaf.place)) === statusAt(leaf.place) &&
        leaf.atMs > after &&
        leaf.atMs < until,
    )
    .map(({ place }) => place);
}

t.test('a filtered page equals a full scan, on the first page and on later ones', async (t) => {
  for (const query of queries) {
    const all = expected(query);
    for (const first of [0, all.length >> 1, all.length - 1]) {
      const before = first > 0 ? { logId: 1, logIndex: all[first - 1] ?? 0 } : undefined;
      const { rows: page } = await listSubmissions(sql, { ...query, before });
      const wanted = all.slice(Math.max(first, 0), Math.max(first, 0) + LIMIT);
      if (page.map(({ logIndex }) => logIndex).join() !== wanted.join()) {
        t.fail(
          `${JSON.stringify({ ...query, before })}: ${page.map(({ logIndex }) => logIndex)} for ${wanted}`,
        );
      }
    }
  }
});

/** The rows of a page and their batches, in two stretches; rows within the time bounds; unsealed rows; look-ups. */
const MOST_ROWS = 4 * LIMIT + 2 * (STRETCH + LEAVES_OUT_OF_ORDER) + (LEAVES - FIRST_UNSEALED) + 50;
const MOST_BUFFERS = 1_000;

t.test('no filter reads much more than the page that it returns', async (t) => {
  for (const query of queries) {
    for (const [planFor, before] of [
      ['these', undefined],
      ['any', { logId: 1, logIndex: LEAVES >> 1 }],
    ] as const) {
      const plan = await planner.explain(() => listSubmissions(sql, { ...query, before }), planFor);
      const what = JSON.stringify({ ...query, before, planFor, ...plan });
      if (plan.rows > MOST_ROWS || plan.buffers > MOST_BUFFERS) t.fail(what);
      if (plan.scans.some((scan) => scan.startsWith('Seq Scan'))) t.fail(what);
    }
  }
});

t.test('nor does a page of batches, which equals the result of a scan', async (t) => {
  const batches = await sql<{ project: string; size: number; status: number }[]>`
    SELECT DISTINCT c.project_id AS project, c.tree_size AS size, b.status
    FROM batch_content c JOIN batch b ON b.log_id = c.log_id AND b.tree_size = c.tree_size ORDER BY 2 DESC`;
  const cases = ['prj_many', 'prj_few', 'prj_none'].flatMap((projectId) =>
    statuses.map((status) => ({ projectId, status })),
  );
  for (const { projectId, status } of cases) {
    const all = batches.filter((one) => one.project === projectId && (status ?? one.status) === one.status);
    for (const first of [0, all.length >> 1]) {
      const before = first > 0 ? { logId: 1, treeSize: all[first - 1]?.size ?? 0 } : undefined;
      const query = { projectId, logIds: [2, 1], status, before, limit: LIMIT };
      const page = await listProjectBatches(sql, query);
      const wanted = all.slice(first, first + LIMIT).map(({ size }) => size);
      t.same(
        page.map(({ treeSize }) => treeSize),
        wanted,
      );
      const plan = await planner.explain(() => listProjectBatches(sql, query), first > 0 ? 'any' : 'these');
      t.ok(
        plan.rows <= 5 * LIMIT + 50 && plan.buffers <= MOST_BUFFERS,
        JSON.stringify({ ...query, ...plan }),
      );
    }
  }
});

t.test('the growth of a log takes an index entry for each size', async (t) => {
  const sizes = 100;
  for (const planFor of ['these', 'any'] as const) {
    const read = () => listLogSizes(sql, [{ id: 1, treeSize: FIRST_UNSEALED }], sizes);
    const plan = await planner.explain(read, planFor);
    t.ok(plan.rows <= sizes && plan.buffers <= MOST_BUFFERS, `${planFor}: ${JSON.stringify(plan)}`);
  }
});

t.test('leaves of wrong clocks are listed by their times, sealed or not', async (t) => {
  const list = async (window: Partial<SubmissionQuery>) => {
    const query = {
      projectId: 'prj_many',
      logIds: [1],
      schema: undefined,
      status: undefined,
      before: undefined,
    };
    const none = { submittedAfter: undefined, submittedBefore: undefined };
    const { rows: page } = await listSubmissions(sql, { ...query, ...none, ...window, limit: LIMIT });
    return page.map(({ logIndex }) => logIndex);
  };
  const slowAndFast = async () => {
    t.same(await list({ submittedBefore: at(-1) }), [LEAVES]);
    t.same(await list({ submittedAfter: at(2) }), [LEAVES + 1]);
    t.same(await list({ submittedAfter: at(-3), submittedBefore: at(-1) }), [LEAVES]);
    t.same(await list({ submittedBefore: at(0.001), status: WITNESSED }), early);
  };
  const early = expected({ ...queries[0]!, submittedBefore: at(0.001) }).slice(0, LIMIT);
  await sql`
    INSERT INTO submission (log_id, log_index, id, project_id, submitted_at, artifact_sha256, schema, metadata_state,
                            commitment, dsse_key_id, signature, leaf_hash)
    SELECT 1, ${LEAVES}::int + n, 'sub_off' || n, 'prj_many', (ARRAY[${at(-2)}, ${at(3)}]::timestamptz[])[n + 1], '',
           'purl', 1, '', 1, '', ''
    FROM generate_series(0, 1) n`;
  await slowAndFast();
  await sql`
    INSERT INTO batch (log_id, tree_size, id, first_index, root_hash, note, policy_version, sealed_at, deadline_at)
    VALUES (1, ${LEAVES + 2}, 'btc_off', ${FIRST_UNSEALED}, '', '', 1, now(), now())`;
  await slowAndFast();
});

t.test('metadata is read only of the submissions that fit into the page', async (t) => {
  await sql`
    INSERT INTO submission (log_id, log_index, id, project_id, submitted_at, artifact_sha256, schema, metadata,
                            metadata_state, commitment, dsse_key_id, signature, leaf_hash)
    SELECT 2, i, 'sub_large' || i, 'prj_large', now(), '', 'purl',
           (SELECT '"' || string_agg(md5(random()::text), '') || '"' FROM generate_series(1, 2000) n WHERE i >= 0),
           1, '', 1, '', ''
    FROM generate_series(0, 200) i`;
  const none = {
    schema: undefined,
    status: undefined,
    submittedAfter: undefined,
    submittedBefore: undefined,
  };
  const query = { projectId: 'prj_large', logIds: [2, 1], ...none, before: undefined, limit: 201 };
  const { rows, isCut } = await listSubmissions(sql, query);
  t.same([rows.length, isCut], [8, true]);
  for (const planFor of ['these', 'any'] as const) {
    const plan = await planner.explain(() => listSubmissions(sql, query), planFor);
    t.ok(plan.buffers < 1_500, JSON.stringify(plan));
  }
});
