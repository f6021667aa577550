import t from 'tap';
import type { SubmissionQuery } from '../../../../src/server/attestations/lists/list-statement.js';
import { createKnownBatches } from '../../../../src/server/attestations/lists/listed-batches.js';
import { listSubmissions } from '../../../../src/server/attestations/lists/submission-lists.js';
import { openPlanner } from '../../../support/judging/plans.js';
import { testDatabase } from '../../../support/servers/shared-servers.js';

const LEAVES = 400;
const LEAVES_PER_BATCH = 10;
const [FIRST_PARTIAL, FIRST_WITNESSED_AGAIN, FIRST_SEALED, FIRST_UNSEALED] = [200, 240, 360, 380];
const [WITNESSED, PARTIAL] = [2, 3];

const planner = openPlanner(await testDatabase(t));
t.teardown(planner.close);
const { sql } = planner;

await sql`
  INSERT INTO log (environment, epoch, origin, public_key)
  SELECT 1, epoch, 'log ' || epoch, '' FROM generate_series(1, 2) epoch`;
await sql`
  INSERT INTO submission (log_id, log_index, id, project_id, submitted_at, artifact_sha256, schema, metadata, metadata_state,
                          commitment, dsse_key_id, signature, leaf_hash)
  SELECT log_id, i, 'sub_' || log_id || '_' || i, 'prj_a', to_timestamp(1.7e9) + i * interval '1.7 ms',
         sha256(i::text::bytea), 'purl', '{"schema":"purl"}', 1, '', 1, '', sha256(i::text::bytea)
  FROM generate_series(0, ${LEAVES - 1}) i, generate_series(1, 2) log_id`;
await sql`
  INSERT INTO batch (log_id, tree_size, id, first_index, root_hash, note, policy_version, sealed_at, deadline_at,
                     registered_at, status, witnessed_at)
  SELECT log_id, i + ${LEAVES_PER_BATCH}, 'btc_' || log_id || '_' || i, i, '', '', 1, now(), now(),
         CASE WHEN i < ${FIRST_UNSEALED - LEAVES_PER_BATCH} THEN now() END, status,
         CASE WHEN status = ${WITNESSED} THEN to_timestamp(1.7e9) + i * interval '1 s' END
  FROM generate_series(0, ${FIRST_UNSEALED - LEAVES_PER_BATCH}, ${LEAVES_PER_BATCH}) i, generate_series(1, 2) log_id,
    LATERAL (SELECT CASE WHEN i >= ${FIRST_SEALED} THEN 1
                         WHEN i >= ${FIRST_PARTIAL} AND i < ${FIRST_WITNESSED_AGAIN} THEN ${PARTIAL}::int
                         ELSE ${WITNESSED}::int END AS status) s`;

const queries = [undefined, 1, WITNESSED, PARTIAL].flatMap((status) =>
  [undefined, 390, 365, 231, 205, 60].map((logIndex): SubmissionQuery => {
    const before = logIndex === undefined ? undefined : { logId: 2, logIndex };
    const none = { schema: undefined, submittedAfter: undefined, submittedBefore: undefined };
    return { projectId: 'prj_a', logIds: [1, 2], status, ...none, before, limit: 51 };
  }),
);
const known = createKnownBatches();
const compare = async () => {
  for (const query of queries) {
    const { rows } = await listSubmissions(sql, query);
    t.same((await listSubmissions(sql, query, known)).rows, rows, JSON.stringify(query));
  }
};

t.test('a page shows the same, whether its batches are known or looked up', async (t) => {
  await compare();
  const newest = known.newest(2);
  t.match(newest, { id: 'btc_2_350', firstIndex: 350, treeSize: FIRST_SEALED, status: WITNESSED });
  t.equal(known.find(2, FIRST_PARTIAL), undefined, 'a partial batch may change');
  t.match(known.find(2, FIRST_PARTIAL - 1), { treeSize: FIRST_PARTIAL });
  await compare();
});

t.test('times are those of the tables, cut to milliseconds', async (t) => {
  const { rows } = await listSubmissions(sql, queries[0]!);
  const row = rows.find(({ logIndex }) => logIndex === 357);
  t.equal(row?.submittedAtMs, 1.7e12 + 606);
  t.equal(row?.witnessedAtMs, 1.7e12 + 350_000);
});

t.test('of another database nothing is known', async (t) => {
  await sql`UPDATE batch SET id = id || '_other'`;
  await compare();
  t.match(known.newest(2), { id: /_other$/ });
  await compare();
});
