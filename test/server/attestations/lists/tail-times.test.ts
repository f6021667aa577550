/** Lists by time while no worker seals: a tail of 150,000 leaves, which are not read one by one. */
import t from 'tap';
import type { SubmissionQuery } from '../../../../src/server/attestations/lists/list-statement.js';
import { listSubmissions } from '../../../../src/server/attestations/lists/submission-lists.js';
import { writeTailTimes } from '../../../../src/server/attestations/lists/tail-times.js';
import { openPlanner } from '../../../support/judging/plans.js';
import { testDatabase } from '../../../support/servers/shared-servers.js';

const LEAVES = 160_000;
const SEALED = 3_000;
const START_MS = Date.UTC(2026, 0, 1);
const LIMIT = 51;
const BLOCK = 1_024;
/** Of the times' disorder: 2 s of a leaf each 10 ms. */
const LEAVES_OUT_OF_ORDER = 200;

const planner = openPlanner(await testDatabase(t));
t.teardown(planner.close);
const { sql } = planner;
const at = (place: number) => new Date(START_MS + place * 10);
await sql`
  INSERT INTO log (environment, epoch, origin, public_key)
  SELECT 1, epoch, 'log ' || epoch, '' FROM generate_series(1, 2) epoch`;
await addLeaves(0, LEAVES);
await seal(0, SEALED);
// Of another log, whose tail is longer.
await sql`
    INSERT INTO tail_time (log_id, end_index, first_index, earliest, latest)
    SELECT 3, i * 1024 + 1024, i * 1024, now(), now() FROM generate_series(0, 9999) i`;
await sql`VACUUM (ANALYZE)`;

/** Leaves of the log, one each 10 ms, whose times are up to 2 s out of order. */
async function addLeaves(first: number, end: number): Promise<void> {
  await sql`
    INSERT INTO submission (log_id, log_index, id, project_id, submitted_at, artifact_sha256, schema, metadata_state,
                            commitment, dsse_key_id, signature, leaf_hash)
    SELECT 1, i, 'sub_' || lpad(i::text, 26, '0'), CASE WHEN i % 5003 = 7 THEN 'prj_few' ELSE 'prj_many' END,
           to_timestamp(${START_MS / 1000}) + (i * 10 + (i * 7919) % 2000) * interval '1 millisecond', '', 'purl',
           1, '', 1, '', ''
    FROM generate_series(${first}::int, ${end - 1}::int) i`;
}

async function seal(first: number, end: number): Promise<void> {
  await sql`
    INSERT INTO batch (log_id, tree_size, id, first_index, root_hash, note, policy_version, sealed_at, deadline_at)
    VALUES (1, ${end}, ${`btc_${end}`}, ${first}, '', '', 1, now(), now())`;
}

async function noteAll(): Promise<void> {
  while (await writeTailTimes(sql, 1));
}

type Window = [after: number | undefined, before: number | undefined];

const WINDOWS: Window[] = [
  [undefined, 1_000],
  [undefined, 5_000],
  [80_000, 80_050],
  [SEALED - 100, SEALED + 100],
  [159_990, undefined],
  [undefined, -1_000],
  [2 * LEAVES, undefined],
  [100_000, 150_000],
];

function queryOf(projectId: string, [after, before]: Window): SubmissionQuery {
  return {
    projectId,
    logIds: [2, 1],
    schema: undefined,
    status: undefined,
    submittedAfter: after === undefined ? undefined : at(after),
    submittedBefore: before === undefined ? undefined : at(before),
    before: undefined,
    limit: LIMIT,
  };
}

/** The result of a full scan, newest first. */
async function expected({ projectId, submittedAfter, submittedBefore }: SubmissionQuery): Promise<number[]> {
  const rows = await sql<{ place: number }[]>`
    SELECT log_index AS place FROM submission
    WHERE project_id = ${projectId} AND submitted_at > ${submittedAfter ?? at(-1e6)}
      AND submitted_at < ${submittedBefore ?? at(1e7)}
    ORDER BY log_index DESC LIMIT ${LIMIT}`;
  return rows.map(({ place }) => place);
}

const QUERIES = ['prj_many', 'prj_few'].flatMap((project) =>
  WINDOWS.map((window) => queryOf(project, window)),
);

async function findWrong(): Promise<string[]> {
  const wrong: string[] = [];
  for (const query of QUERIES) {
    const { rows } = await listSubmissions(sql, query);
    const found = rows.map(({ logIndex }) => logIndex).join();
    if (found !== (await expected(query)).join()) wrong.push(`${JSON.stringify(query)}: ${found}`);
  }
  return wrong;
}

t.test('pages are correct without time bounds, while bounds are written, and with them', async (t) => {
  t.same(await findWrong(), []);
  t.equal(await writeTailTimes(sql, 1), true, 'some of them');
  t.same(await findWrong(), []);
  await noteAll();
  t.same(await findWrong(), []);
});

t.test('a page reads about as many rows as it returns, over tails of any length', async (t) => {
  const most = 4 * LIMIT + 2 * (BLOCK + LEAVES_OUT_OF_ORDER) + BLOCK + 3 * Math.ceil(LEAVES / BLOCK) + 50;
  for (const query of QUERIES) {
    for (const planFor of ['these', 'any'] as const) {
      const plan = await planner.explain(() => listSubmissions(sql, query), planFor);
      const what = JSON.stringify({ ...query, planFor, ...plan });
      if (plan.rows > most || plan.buffers > 1_000) t.fail(what);
      if (plan.scans.some((scan) => /^Seq Scan (submission|tail_time)/.test(scan))) t.fail(what);
    }
  }
});

t.test('bounds follow the log as it grows and as it is sealed', async (t) => {
  const blocks = async () => {
    const rows = await sql<{ first: number; end: number }[]>`
      SELECT first_index AS first, end_index AS end FROM tail_time WHERE log_id = 1 ORDER BY end_index`;
    return rows.map(({ first, end }) => [first, end]);
  };
  await addLeaves(LEAVES, LEAVES + 3_000);
  t.same(await findWrong(), []);
  await noteAll();
  t.same(await findWrong(), []);
  const before = await blocks();
  t.same(before[0], [2 * BLOCK, 3 * BLOCK], 'from the block that is sealed in part');
  t.ok(
    before.every(([first], i) => i === 0 || first === before[i - 1]?.[1]),
    'without a gap',
  );
  t.equal(before.at(-1)?.[1], LEAVES + 3_000 - ((LEAVES + 3_000) % BLOCK));
  await seal(SEALED, 90_000);
  t.same(await findWrong(), [], 'old bounds are of no meaning');
  await noteAll();
  t.same(await findWrong(), []);
  t.same((await blocks())[0], [87 * BLOCK, 88 * BLOCK]);
  await seal(90_000, LEAVES + 3_000);
  await noteAll();
  t.same(await blocks(), []);
  t.same(await findWrong(), []);
  await addLeaves(LEAVES + 3_000, LEAVES + 6_000);
  await noteAll();
  t.same(await blocks(), [], 'a short tail has none');
});
