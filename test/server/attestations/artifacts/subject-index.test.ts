/** Look-ups by the subjects of public statements: exact before the index, while it is made and merged, and after erasure. */
import { createHash } from 'node:crypto';
import t, { type Test } from 'tap';
import {
  addArtifactRun,
  mergeArtifactRuns,
} from '../../../../src/server/attestations/artifacts/artifact-runs.js';
import { findPublicArtifact } from '../../../../src/server/attestations/artifacts/public-lookup.js';
import { listSubmissions } from '../../../../src/server/attestations/lists/submission-lists.js';
import { openPlanner } from '../../../support/judging/plans.js';
import { testDatabase } from '../../../support/servers/shared-servers.js';

const BLOCK = 1_024;
const LEAVES = 17 * BLOCK + 300;
/** One leaf in so many has a public statement. */
const PUBLIC_STEP = 40;
const SUBJECTS = 30;
const LIMIT = 51;

const planner = openPlanner(await testDatabase(t));
t.teardown(planner.close);
const { sql } = planner;
const sha256 = (text: string) => createHash('sha256').update(text).digest();
/** A subject of every public statement, and of none. */
const SHARED = sha256('shared');

await sql`INSERT INTO log (environment, epoch, origin, public_key) VALUES (1, 1, 'log', '')`;
await sql`INSERT INTO project (id, name, public_lookup) VALUES ('prj_a', 'a', true), ('prj_b', 'b', false)`;
await sql`
  INSERT INTO submission (log_id, log_index, id, project_id, submitted_at, artifact_sha256, schema, metadata_state,
                          commitment, dsse_key_id, signature, leaf_hash, statement_version)
  SELECT 1, i, 'sub_' || lpad(i::text, 26, '0'), CASE WHEN i % 3 = 0 THEN 'prj_b' ELSE 'prj_a' END,
         to_timestamp(1795374000 + i), sha256(convert_to('artifact ' || i, 'UTF8')), 'purl', 1, '', 1, '', '',
         CASE WHEN i % ${PUBLIC_STEP}::int = 5 THEN 3 ELSE 1 END
  FROM generate_series(0, ${LEAVES - 1}::int) i`;
await sql`
  INSERT INTO submission_statement (log_id, log_index, digest, text, shown, subjects)
  SELECT 1, i, '', '{}', '{"subjects":1}', CASE
    -- Twice, and the artifact again: an entry of the index is there once.
    WHEN i = 5 THEN array_fill(sha256(convert_to('artifact 5', 'UTF8')), ARRAY[1000]) || array_fill(${SHARED}::bytea, ARRAY[23])
    ELSE ARRAY(SELECT sha256(convert_to('subject ' || i || ' ' || n, 'UTF8')) FROM generate_series(1, ${SUBJECTS}::int) n)
         || ${SHARED}::bytea END
  FROM generate_series(5, ${LEAVES - 1}::int, ${PUBLIC_STEP}::int) i`;
await sql`
  INSERT INTO batch (log_id, tree_size, id, first_index, root_hash, note, policy_version, sealed_at, deadline_at,
                     registered_at, status)
  SELECT 1, ${LEAVES}::bigint, 'btc_1', 0, '', '', 1, now(), now(), now(), 2`;
await sql`VACUUM (ANALYZE)`;

const PUBLIC = Array.from(
  { length: Math.ceil((LEAVES - 5) / PUBLIC_STEP) },
  (_, n) => 5 + n * PUBLIC_STEP,
).reverse();
const erased = new Set<number>();

/** The indexes of all submissions of a project with this subject, newest first, page by page. */
async function walk(projectId: string, artifactSha256: Buffer): Promise<number[]> {
  const found: number[] = [];
  const page = {
    schema: undefined,
    status: undefined,
    submittedAfter: undefined,
    submittedBefore: undefined,
  };
  let before: { logId: number; logIndex: number } | undefined;
  do {
    const query = { projectId, logIds: [1], artifactSha256, ...page, before, limit: LIMIT };
    const { rows, stoppedAt } = await listSubmissions(sql, query);
    found.push(...rows.map(({ logIndex }) => logIndex));
    before = rows.length === LIMIT ? rows.at(-1) : stoppedAt;
  } while (before !== undefined);
  return found;
}

async function assertExact(t: Test, when: string): Promise<void> {
  const known = PUBLIC.filter((i) => !erased.has(i));
  t.same(
    await walk('prj_a', SHARED),
    known.filter((i) => i % 3 !== 0),
    `${when}: of one project`,
  );
  t.same(
    await walk('prj_b', SHARED),
    known.filter((i) => i % 3 === 0),
    `${when}: of the other`,
  );
  for (const i of [PUBLIC[0], PUBLIC[100], PUBLIC[101], PUBLIC.at(-2)] as number[]) {
    const [own, other] = i % 3 === 0 ? ['prj_b', 'prj_a'] : ['prj_a', 'prj_b'];
    for (const n of [1, SUBJECTS]) {
      t.same(await walk(own, sha256(`subject ${i} ${n}`)), erased.has(i) ? [] : [i], `${when}: ${i}`);
      t.same(await walk(other, sha256(`subject ${i} ${n}`)), [], `${when}: ${i} of another project`);
    }
    t.same(await walk(own, sha256(`artifact ${i}`)), [i], `${when}: the artifact itself`);
    const { submissions } = await findPublicArtifact(sql, sha256(`subject ${i} 1`), {
      isDefault: false,
      limit: 5,
    });
    const isShown = own === 'prj_a' && !erased.has(i);
    t.equal(submissions.length, isShown ? 1 : 0, `${when}: ${i} in public`);
  }
  t.same(await walk('prj_a', sha256('artifact 5')), [5]);
  t.same(await walk('prj_a', sha256('nothing')), []);
}

t.test('pages and look-ups are exact without the index, while it is made, and after merges', async (t) => {
  await assertExact(t, 'without the index');
  t.equal(await addArtifactRun(sql, 1), true);
  await assertExact(t, 'with a run');
  t.equal(await addArtifactRun(sql, 1), true);
  await assertExact(t, 'with two');
  t.equal(await addArtifactRun(sql, 1), false);
  const [{ entries } = { entries: 0 }] = await sql<{ entries: number }[]>`
    SELECT sum(octet_length(entries))::bigint / 16 AS entries FROM artifact_chunk`;
  const indexed = PUBLIC.filter((i) => i < 17 * BLOCK).length;
  t.equal(entries, 17 * BLOCK + (indexed - 1) * (SUBJECTS + 1) + 1, 'each entry once');
});

t.test('runs with more entries than leaves are merged', async (t) => {
  await sql`DELETE FROM artifact_chunk`;
  await sql`DELETE FROM artifact_run`;
  await sql`
    INSERT INTO artifact_run (log_id, level, first_index, end_index, is_current)
    SELECT 1, 0, i * ${BLOCK}::int, (i + 1) * ${BLOCK}::int, true FROM generate_series(0, 15) i`;
  await sql`
    INSERT INTO artifact_chunk (run_id, first_entry, entries)
    SELECT id, (array_agg(entry ORDER BY entry))[1], string_agg(entry, '' ORDER BY entry) FROM (
      SELECT r.id, e.entry, (row_number() OVER (PARTITION BY r.id ORDER BY e.entry) - 1) / 120 AS chunk
      FROM artifact_run r
      JOIN submission s ON s.log_id = 1 AND s.log_index >= r.first_index AND s.log_index < r.end_index
      LEFT JOIN submission_statement t ON t.log_id = 1 AND t.log_index = s.log_index
      CROSS JOIN LATERAL (
        SELECT DISTINCT artifact_entry(one, s.project_id, s.log_index) AS entry
        FROM unnest(coalesce(t.subjects, '{}') || s.artifact_sha256) one) e
    ) entries GROUP BY id, chunk`;
  await assertExact(t, 'before the merge');
  let parts = 0;
  while (await mergeArtifactRuns(sql, 1)) parts++;
  t.ok(parts > 0, `${parts} parts`);
  await assertExact(t, 'after the merge');
});

t.test('a look-up finds no erased subject, and the artifact as before', async (t) => {
  for (const i of [PUBLIC[0], PUBLIC[100]] as number[]) {
    erased.add(i);
    await sql`UPDATE submission_statement SET subjects = NULL, shown = NULL WHERE log_index = ${i}`;
  }
  await assertExact(t, 'with erased ones');
});

t.test('a page of a subject reads few rows', async (t) => {
  for (const planFor of ['these', 'any'] as const) {
    const plan = await planner.explain(() => walk('prj_a', sha256(`subject ${PUBLIC[50]} 3`)), planFor);
    t.ok(plan.buffers < 2_500, JSON.stringify(plan));
    t.notOk(plan.scans.includes('Seq Scan submission_statement'), JSON.stringify(plan.scans));
  }
});
