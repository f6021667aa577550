/** How many rows the database's functions read: their cached plans outlive the table sizes they were made for. */
import { randomBytes } from 'node:crypto';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { ulid } from 'ulid';
import { DeliveryStatus } from '../../../gen/attestation/v1/webhooks_pb.js';
import {
  type NewSubmission,
  SubmissionOutcome,
  sequenceSubmissions,
} from '../../../src/server/attestations/sequence/sequence-submissions.js';
import type { Pool } from '../../../src/server/database/connect.js';
import { takeReadTokens } from '../../../src/server/limits/rate-counters.js';
import { recordAttempts } from '../../../src/server/webhooks/store/webhook-attempts.js';
import { testDatabase } from '../../support/servers/shared-servers.js';

const url = await testDatabase(t);

/** Opens one connection, which caches its plans. */
function openSession(): Pool {
  const types = { bigint: { to: 20, from: [20], serialize: String, parse: Number } };
  const sql = postgres(url, { max: 1, onnotice: () => {}, types });
  t.teardown(() => sql.end());
  return sql;
}

const old = openSession();
const TABLES = [
  'idempotency_key',
  'log_time',
  'rate_counter',
  'submission',
  'webhook_delivery',
  'webhook_range',
];
/** More calls than plpgsql plans one by one before it caches a generic plan. */
const CALLS = 8;
const KEY = 'key_test';

const hex = (bytes: number) => randomBytes(bytes).toString('hex');

function makeRows(count: number): NewSubmission[] {
  return Array.from({ length: count }, () => ({
    id: `sub_${ulid()}`,
    projectId: 'prj_test',
    apiKeyId: KEY,
    submittedAtMs: Date.now(),
    artifactSha256: hex(32),
    schema: 'purl',
    metadata: '{}',
    metadataErrors: null,
    build: null,
    statement: null,
    salt: hex(32),
    commitment: hex(32),
    dsseKeyId: 1,
    signature: hex(70),
    leafHash: hex(32),
    idempotency: { key: hex(16), requestHash: hex(32) },
    limits: { perSecond: 1e9, perHour: 1e9, perDay: 1e9 },
  }));
}

type Read = { table: string; scanned: number; fetched: number };

/** Runs a function. Returns the rows that it read of each table, all its partitions, by scans and by indexes. */
async function readBy(sql: Pool, run: () => Promise<unknown>): Promise<Read[]> {
  const readUntilNow = () => sql<Read[]>`
    SELECT t."table", sum(seq_tup_read)::bigint AS scanned, sum(coalesce(idx_tup_fetch, 0))::bigint AS fetched
    FROM pg_stat_xact_user_tables
    CROSS JOIN LATERAL (SELECT coalesce(pg_partition_root(relid), relid)::regclass::text AS "table") t
    WHERE t."table" = ANY (${TABLES}) GROUP BY 1 ORDER BY 1`;
  await sql`BEGIN`;
  const before = await readUntilNow();
  await run();
  const after = await readUntilNow();
  await sql`COMMIT`;
  return after.map(({ table, scanned, fetched }, i) => ({
    table,
    scanned: scanned - before[i]!.scanned,
    fetched: fetched - before[i]!.fetched,
  }));
}

async function accept(sql: Pool, rows: readonly NewSubmission[], again = false) {
  const accepted = await sequenceSubmissions(sql, 1, rows, again, 86_400_000);
  return accepted.map(({ outcome }) => outcome);
}

/** Makes each kind of call: new keys, known keys, and a retry. */
async function acceptEach(sql: Pool): Promise<Read[][]> {
  const rows = makeRows(8);
  const reads: Read[][] = [];
  for (const [again, expected] of [
    [false, SubmissionOutcome.STORED],
    [false, SubmissionOutcome.REPLAYED],
    [true, SubmissionOutcome.STORED],
  ] as const) {
    const read = await readBy(sql, async () => {
      const outcomes = await accept(sql, rows, again);
      if (outcomes.some((outcome) => outcome !== expected)) throw new Error(`${outcomes} for ${expected}`);
    });
    reads.push(read);
  }
  return reads;
}

const takeRead = (sql: Pool) =>
  readBy(sql, () =>
    takeReadTokens(sql, 1, { apiKeyId: KEY, projectId: 'prj', perSecond: 1e9, projectPerSecond: undefined }),
  );

async function fillKeys(count: number): Promise<void> {
  await old`
    INSERT INTO idempotency_key (api_key_id, key, request_hash, resource_id, created_at)
    SELECT ${KEY}, md5(random()::text), '', '', now() FROM generate_series(1, ${count})`;
}

const inWords = (read: Read) => `${read.table}: ${read.scanned} rows scanned, ${read.fetched} by indexes`;

await old`
  INSERT INTO log (environment, epoch, origin, public_key) VALUES (1, 1, 'log', '')`;
for (const table of [...TABLES.filter((name) => name !== 'submission'), 'submission_1_0'])
  await old.unsafe(`ALTER TABLE ${table} SET (autovacuum_enabled = off)`);

/** For each of a call's 8 rows: its key, its submission, the counters. */
const MOST_FETCHED = 8 * 4;

/** Makes calls in the session with plans for smaller tables, and in a new one. */
async function callEach(t: Test, call: (sql: Pool) => Promise<Read[]>, most = MOST_FETCHED): Promise<void> {
  for (const [name, sql] of [
    ['with plans of smaller tables', old],
    ['planned now', openSession()],
  ] as const) {
    for (let n = 0; n < CALLS; n++) {
      const wrong = (await call(sql)).filter(({ scanned, fetched }) => scanned > 0 || fetched > most);
      t.same(wrong.map(inWords), [], `${name}, call ${n}`);
    }
  }
}

for (const [keys, analyzed] of [
  [0, true],
  [200, false],
  [100_000, true],
] as const) {
  t.test(`creations read their own keys, of ${keys}, analysed: ${analyzed}`, async (t) => {
    const [known] = await old<{ count: number }[]>`SELECT count(*) FROM idempotency_key`;
    await fillKeys(keys - known!.count);
    if (analyzed) await old`VACUUM (ANALYZE)`;
    await callEach(t, async (sql) => [...(await acceptEach(sql)).flat(), ...(await takeRead(sql))]);
  });
}

/** Inserts a batch of the next 8 leaves, which need not exist. */
async function seal(sql: Pool): Promise<Read[]> {
  return readBy(
    sql,
    () => sql`
      INSERT INTO batch (log_id, tree_size, id, first_index, root_hash, note, policy_version, sealed_at, deadline_at)
      SELECT 1, size + 8, 'btc_' || size, size, '', '', 1, now(), now()
      FROM (SELECT coalesce(max(tree_size), 0) AS size FROM batch) b`,
  );
}

for (const leaves of [0, 100_000]) {
  t.test(`a batch reads its own leaves, of ${leaves} more`, async (t) => {
    await old`
      WITH leaves AS (
        INSERT INTO submission (log_id, log_index, id, project_id, submitted_at, artifact_sha256, schema, metadata_state,
                                commitment, dsse_key_id, signature, leaf_hash)
        SELECT 1, max + i, 'sub_' || (max + i), 'prj_test', now(), '', 'purl', 1, '', 1, '', ''
        FROM (SELECT max(log_index) FROM submission) m, generate_series(1, ${leaves + 1_000}) i RETURNING log_index
      )
      INSERT INTO batch (log_id, tree_size, id, first_index, root_hash, note, policy_version, sealed_at, deadline_at)
      SELECT 1, max(log_index) - 999, 'btc_big' || max(log_index), coalesce((SELECT max(tree_size) FROM batch), 0),
             '', '', 1, now(), now()
      FROM leaves`;
    await callEach(t, seal);
  });
}

/** Claims the next deliveries of a subscription: one from before, others from a range of 4 leaves. */
async function claim(sql: Pool): Promise<Read[]> {
  const ids = Array.from({ length: 8 }, () => `dlv_${ulid()}`);
  await sql`
    INSERT INTO webhook_range SELECT 'whk_test', 1, 1, 2, 100, 103
    ON CONFLICT ON CONSTRAINT webhook_range_pkey DO UPDATE SET next_index = 100`;
  await sql`INSERT INTO webhook_delivery (webhook_id, id) VALUES ('whk_test', ${`dlv_${ulid()}`})`;
  return readBy(sql, async () => {
    const claimed = await sql`SELECT * FROM claim_webhook_deliveries('whk_test', 1, 60000, 60000, 8, ${ids})`;
    if (claimed.length !== 5) throw new Error(`${claimed.length} deliveries were claimed`);
    await sql`SELECT release_webhook('whk_test', 1)`;
  });
}

/** The rows of the subscription itself, read by several statements. */
const MOST_OWN = 1_000;

for (const deliveries of [0, 100_000]) {
  t.test(`a subscription's deliveries are found among ${deliveries} of others`, async (t) => {
    await old`INSERT INTO project VALUES ('prj_test', 'a test') ON CONFLICT DO NOTHING`;
    await old`
      INSERT INTO webhook (id, project_id, environment, url, events, secret, lease)
      VALUES ('whk_test', 'prj_test', 1, '', '{1}', '', 1) ON CONFLICT DO NOTHING`;
    await old`UPDATE project SET webhook_deliveries_burst = 1000000, webhook_deliveries_per_second = 1000000`;
    await old`
      INSERT INTO webhook_delivery (webhook_id, id, status)
      SELECT 'whk_' || n % 100, ${deliveries} || '_' || n, 1 + n % 3 FROM generate_series(1, ${deliveries}::int) n`;
    await callEach(t, claim, MOST_OWN);
  });
}

const ANSWER = { at: new Date(), durationMs: 1, url: null, statusCode: 200, error: null, answer: '' };
const OUTCOME = { status: DeliveryStatus.DELIVERED, isGone: false, retryAfterMs: null };
const DELIVERED = { webhookId: 'whk_test', lease: 1, step: 0, ...ANSWER, ...OUTCOME };

/** Claims 8 deliveries of a subscription and records that they were made. */
async function claimAndRecord(sql: Pool): Promise<Read[]> {
  await sql`
    INSERT INTO webhook_delivery (webhook_id, id) SELECT 'whk_test', gen_random_uuid() FROM generate_series(1, 8)`;
  return readBy(sql, async () => {
    const claimed = await sql<{ id: string; number: number }[]>`
      SELECT id, attempt AS number FROM claim_webhook_deliveries('whk_test', 1, 60000, 60000, 8, '{}')`;
    if (claimed.length !== 8) throw new Error(`${claimed.length} deliveries were claimed`);
    await recordAttempts(
      sql,
      claimed.map(({ id, number }) => ({ ...DELIVERED, deliveryId: id, number })),
    );
  });
}

for (const deliveries of [0, 20_000]) {
  t.test(`deliveries are claimed and recorded among ${deliveries} of the subscription`, async (t) => {
    await old`TRUNCATE webhook_delivery`;
    await claimAndRecord(old);
    await old`
      INSERT INTO webhook_delivery (webhook_id, id, status)
      SELECT 'whk_test', 'old_' || n, ${DELIVERED.status} FROM generate_series(1, ${deliveries}::int) n`;
    await callEach(t, claimAndRecord, 2 * MOST_FETCHED);
  });
}

t.test('every function that reads a table is planned for a large one', async (t) => {
  const functions = await old<{ name: string }[]>`
    SELECT proname AS name FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
    WHERE pronamespace = 'public'::regnamespace AND lanname = 'plpgsql'
      AND 'enable_seqscan=off' <> ALL (coalesce(proconfig, '{}')) ORDER BY 1`;
  t.same(
    functions.map(({ name }) => name),
    ['confirm_durable', 'count_metadata_changes', 'refuse_change'],
    'these read none',
  );
});
