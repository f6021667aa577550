/** Lists by artifact: without the index, while it is made and merged, interrupted, and with it. */
import { createHash } from 'node:crypto';
import t, { type Test } from 'tap';
import {
  addArtifactRun,
  mergeArtifactRuns,
  readArtifactIndex,
} from '../../../../src/server/attestations/artifacts/artifact-runs.js';
import { indexArtifacts, indexTails } from '../../../../src/server/attestations/artifacts/index-artifacts.js';
import { findPublicArtifact } from '../../../../src/server/attestations/artifacts/public-lookup.js';
import type { SubmissionQuery } from '../../../../src/server/attestations/lists/list-statement.js';
import { listSubmissions } from '../../../../src/server/attestations/lists/submission-lists.js';
import { createLogger } from '../../../../src/server/core/logger.js';
import { openPlanner } from '../../../support/judging/plans.js';
import { testDatabase } from '../../../support/servers/shared-servers.js';

/** Leaves of the first epoch's log, and of the second's. */
const LEAVES = 18_000;
const LATER_LEAVES = 3_000;
const SEALED = 15_000;
const [FIRST_FAILED, FIRST_QUEUED] = [5_000, 12_000];
const BLOCK = 1_024;
const START_MS = Date.UTC(2026, 0, 1);
const LIMIT = 51;
const [QUEUED, WITNESSED, FAILED] = [1, 2, 4];
/** Submissions that a page looks at. */
const MAX_CANDIDATES = 10_000;

const planner = openPlanner(await testDatabase(t));
t.teardown(planner.close);
const { sql } = planner;
const at = (place: number) => new Date(START_MS + place * 10);
/** Of two leaves in three. */
const HOT = sha256('hot');

await sql`
  INSERT INTO log (environment, epoch, origin, public_key)
  SELECT 1, epoch, 'log ' || epoch, '' FROM generate_series(1, 2) epoch`;
await addLeaves(1, 0, LEAVES);
await addLeaves(2, 0, LATER_LEAVES);
await sql`
  INSERT INTO batch (log_id, tree_size, id, first_index, root_hash, note, policy_version, sealed_at, deadline_at,
                     registered_at, status)
  SELECT 1, i + 50, 'btc_' || i, i, '', '', 1, now(), now(), now(),
         CASE WHEN i >= ${FIRST_QUEUED} THEN ${QUEUED}::int WHEN i >= ${FIRST_FAILED} THEN ${FAILED}::int
              ELSE ${WITNESSED}::int END
  FROM generate_series(0, ${SEALED - 50}, 50) i`;
await sql`
  INSERT INTO project (id, name, public_lookup) VALUES ('prj_many', 'private', false), ('prj_few', 'public', true)`;
await sql`VACUUM (ANALYZE)`;

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

async function addLeaves(logId: number, first: number, end: number): Promise<void> {
  await sql`
    INSERT INTO submission (log_id, log_index, id, project_id, submitted_at, artifact_sha256, schema, metadata_state,
                            commitment, dsse_key_id, signature, leaf_hash)
    SELECT ${logId}, i, 'sub_' || ${logId}::int || lpad(i::text, 25, '0'),
           CASE WHEN i % 503 = 7 THEN 'prj_few' ELSE 'prj_many' END,
           to_timestamp(${START_MS / 1000}) + (i * 10 + (i * 7919) % 2000) * interval '1 millisecond',
           CASE WHEN i % 3 < 2 THEN ${HOT} ELSE sha256(convert_to((i % 997)::text, 'UTF8')) END,
           CASE WHEN i % 3001 = 6 THEN 'rare' ELSE 'purl' END, 1, '', 1, '', ''
    FROM generate_series(${first}::int, ${end - 1}::int) i`;
}

const WINDOWS = [{}, { submittedAfter: at(4_000), submittedBefore: at(5_500) }];
const QUERIES = ['prj_many', 'prj_few'].flatMap((projectId) =>
  [HOT, sha256('14'), sha256('none')].flatMap((artifactSha256) =>
    [undefined, 'rare'].flatMap((schema) =>
      [undefined, FAILED].flatMap((status) =>
        WINDOWS.map((window): SubmissionQuery => {
          const times = { submittedAfter: undefined, submittedBefore: undefined, ...window };
          const page = { logIds: [2, 1], before: undefined, limit: LIMIT };
          return { projectId, artifactSha256, schema, status, ...times, ...page };
        }),
      ),
    ),
  ),
);

type Leaf = { logId: number; place: number; project: string; artifact: string; schema: string; atMs: number };
const leaves = await sql<Leaf[]>`
  SELECT log_id AS "logId", log_index AS place, project_id AS project, encode(artifact_sha256, 'hex') AS artifact,
         schema, (extract(epoch FROM submitted_at) * 1000)::bigint AS "atMs"
  FROM submission ORDER BY log_id DESC, log_index DESC`;

function statusOf({ logId, place }: Leaf): number {
  if (logId === 2 || place >= FIRST_QUEUED) return QUEUED;
  return place >= FIRST_FAILED ? FAILED : WITNESSED;
}

/** The places of the newest leaves that match, by a full scan. */
function expected(query: SubmissionQuery): string[] {
  const artifact = Buffer.from(query.artifactSha256 ?? []).toString('hex');
  const matching = leaves.filter(
    (leaf) =>
      leaf.project === query.projectId &&
      leaf.artifact === artifact &&
      (query.schema ?? leaf.schema) === leaf.schema &&
      (query.status ?? statusOf(leaf)) === statusOf(leaf) &&
      leaf.atMs > (query.submittedAfter?.getTime() ?? Number.NEGATIVE_INFINITY) &&
      leaf.atMs < (query.submittedBefore?.getTime() ?? Number.POSITIVE_INFINITY),
  );
  return matching.slice(0, 3 * LIMIT).map(({ logId, place }) => `${logId}/${place}`);
}

/** The places that pages have, until there are enough or no more. */
async function walk(query: SubmissionQuery): Promise<string[]> {
  const found: string[] = [];
  let before = query.before;
  do {
    const { rows, stoppedAt } = await listSubmissions(sql, { ...query, before });
    found.push(...rows.map(({ logId, logIndex }) => `${logId}/${logIndex}`));
    before = rows.length === LIMIT ? rows.at(-1) : stoppedAt;
  } while (before !== undefined && found.length < 3 * LIMIT);
  return found.slice(0, 3 * LIMIT);
}

/** The newest settled leaves of the artifact, which is looked up in public for one project only. */
const PUBLIC = leaves
  .filter(
    (leaf) =>
      leaf.project === 'prj_few' && leaf.artifact === HOT.toString('hex') && statusOf(leaf) === WITNESSED,
  )
  .sort((a, b) => b.atMs - a.atMs)
  .slice(0, 5);

async function assertExact(t: Test, when: string): Promise<void> {
  const { submissions } = await findPublicArtifact(sql, HOT, { isDefault: false, limit: 5 });
  const times = submissions.map(({ projectId, submittedAt }) => [projectId, submittedAt.getTime()]);
  t.same(
    times,
    PUBLIC.map(({ project, atMs }) => [project, atMs]),
    when,
  );
  for (const query of QUERIES) {
    const [found, wanted] = [await walk(query), expected(query)];
    if (found.join() !== wanted.join()) t.fail(`${when}, ${JSON.stringify(query)}: ${found} for ${wanted}`);
  }
}

type Run = { level: number; first: number; end: number };
const runsOf = (logId: number) => sql<Run[]>`
  SELECT level, first_index AS first, end_index AS end FROM artifact_run
  WHERE log_id = ${logId} AND is_current ORDER BY end_index`;

/** Makes statements that write this table fail, as a process that ends before its transaction commits. */
async function interrupting(table: string, run: () => Promise<unknown>): Promise<void> {
  await sql.unsafe(
    `CREATE TRIGGER interrupted AFTER INSERT OR UPDATE OR DELETE ON ${table} FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()`,
  );
  await run().then(
    () => t.fail('nothing was written'),
    () => {},
  );
  await sql.unsafe(`DROP TRIGGER interrupted ON ${table}`);
}

t.test('pages are exact without the index, and each looks at few submissions', async (t) => {
  await assertExact(t, 'without the index');
  const { rows, stoppedAt } = await listSubmissions(sql, {
    ...QUERIES[0]!,
    artifactSha256: sha256('none'),
  });
  t.same([rows.length, stoppedAt?.logId], [0, 1], 'the second log and a part of the first');
});

t.test('pages are exact while the index is made, and after each interruption', async (t) => {
  // The second log has no 16 blocks; of the first, 16 blocks are made one by one as they would be while it grows.
  for (let runs = 0; runs < 2; runs++) t.equal(await addArtifactRun(sql, 2), true);
  t.equal(await addArtifactRun(sql, 2), false, 'what is left is no block');
  await interrupting('artifact_chunk', () => addArtifactRun(sql, 1));
  t.same(await runsOf(1), []);
  t.equal(await addArtifactRun(sql, 1), true);
  t.same(await runsOf(1), [{ level: 1, first: 0, end: 16 * BLOCK }], 'many leaves make a larger run');
  await assertExact(t, 'with a run made of leaves');
  await splitIntoBlocks();
  t.equal(await addArtifactRun(sql, 1), true);
  t.same((await runsOf(1)).length, 17);
  await assertExact(t, 'before the merge');
  t.equal(await mergeArtifactRuns(sql, 1), true);
  t.same((await runsOf(1)).length, 17, 'the first part of a merge');
  await assertExact(t, 'during the merge');
  await interrupting('artifact_chunk', () => mergeArtifactRuns(sql, 1));
  let parts = 1;
  while ((await runsOf(1)).length === 17) {
    await interrupting('artifact_run', () => mergeArtifactRuns(sql, 1));
    t.equal(await mergeArtifactRuns(sql, 1), true);
    parts++;
  }
  t.ok(parts > 2, `${parts} parts`);
  t.equal(await mergeArtifactRuns(sql, 1), false, 'nothing is left to merge');
  t.same(await runsOf(1), [
    { level: 1, first: 0, end: 16 * BLOCK },
    { level: 0, first: 16 * BLOCK, end: 17 * BLOCK },
  ]);
  await assertExact(t, 'after the merge');
  t.equal(await addArtifactRun(sql, 1), false);
  t.same(
    await sql`SELECT count(*)::int AS n FROM artifact_chunk WHERE run_id NOT IN (SELECT id FROM artifact_run)`,
    [{ n: 0 }],
  );
});

/** Splits the run of 16 blocks into the runs that it would have been merged from, with 16 entries a row. */
async function splitIntoBlocks(): Promise<void> {
  await sql`
    WITH whole AS (
      UPDATE artifact_run SET level = 0, end_index = ${BLOCK} WHERE log_id = 1 RETURNING id
    ), run AS (
      INSERT INTO artifact_run (log_id, level, first_index, end_index, is_current)
      SELECT 1, 0, i * ${BLOCK}::int, (i + 1) * ${BLOCK}::int, true FROM generate_series(1, 15) i
      RETURNING id, first_index
    ), all_runs AS (SELECT id, 0 AS first_index FROM whole UNION ALL SELECT * FROM run)
    INSERT INTO artifact_chunk (run_id, first_entry, entries)
    SELECT id, (array_agg(entry ORDER BY entry))[1], string_agg(entry, '' ORDER BY entry) FROM (
      SELECT r.id, e.entry, (row_number() OVER (PARTITION BY r.id ORDER BY e.entry) - 1) / 16 AS chunk
      FROM all_runs r
      JOIN submission s ON s.log_id = 1 AND s.log_index >= r.first_index AND s.log_index < r.first_index + ${BLOCK}::int
      CROSS JOIN LATERAL (SELECT artifact_entry(s.artifact_sha256, s.project_id, s.log_index) AS entry) e
    ) entries GROUP BY id, chunk
    ON CONFLICT (run_id, first_entry) DO UPDATE SET entries = excluded.entries`;
  // What is left of the whole run: rows of more than 16 entries.
  await sql`
    DELETE FROM artifact_chunk WHERE octet_length(entries) > 256
    AND run_id IN (SELECT id FROM artifact_run WHERE log_id = 1)`;
}

t.test('a page reads few rows of any number of leaves', async (t) => {
  for (const query of QUERIES.filter(({ schema }) => schema === undefined)) {
    for (const planFor of ['these', 'any'] as const) {
      const plan = await planner.explain(() => listSubmissions(sql, query), planFor);
      const what = JSON.stringify({ ...query, planFor, ...plan });
      if (plan.buffers > 2_500 || plan.scans.some((scan) => scan.startsWith('Seq Scan'))) t.fail(what);
    }
  }
  t.same(await readArtifactIndex(sql), [
    { logId: 1, indexed: 17 * BLOCK, size: LEAVES },
    { logId: 2, indexed: 2 * BLOCK, size: LATER_LEAVES },
  ]);
});

t.test(
  'a filter that the index does not know stops after as many submissions as a page may read',
  async (t) => {
    const query = QUERIES.find(({ schema, status }) => schema === 'rare' && status === undefined)!;
    const { rows, stoppedAt } = await listSubmissions(sql, query);
    t.ok(rows.length < LIMIT && stoppedAt !== undefined);
    const seen = leaves.filter(
      ({ logId, place }) =>
        logId > stoppedAt!.logId || (logId === stoppedAt!.logId && place >= stoppedAt!.logIndex),
    );
    t.ok(seen.filter(({ project }) => project === 'prj_many').length >= MAX_CANDIDATES);
  },
);

t.test('workers index every leaf, and API processes only a long tail', async (t) => {
  const log = createLogger({ level: 'silent' });
  const indexed = async () => (await readArtifactIndex(sql)).map((state) => state.indexed);
  await indexTails(sql);
  t.same(await indexed(), [17 * BLOCK, 2 * BLOCK], 'short tails are left to the workers');
  await addLeaves(2, LATER_LEAVES, LATER_LEAVES + 4 * BLOCK);
  await indexTails(sql);
  t.same(await indexed(), [17 * BLOCK, 6 * BLOCK]);
  await addLeaves(1, LEAVES, LEAVES + 2 * BLOCK);
  await indexArtifacts({ pool: sql, log }, AbortSignal.abort());
  t.same(await indexed(), [17 * BLOCK, 6 * BLOCK], 'a worker that stops begins nothing');
  await indexArtifacts({ pool: sql, log }, new AbortController().signal);
  t.same(await indexed(), [19 * BLOCK, 6 * BLOCK]);
});
