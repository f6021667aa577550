import t from 'tap';
import { ulid } from 'ulid';
import { DeliveryStatus } from '../../../gen/attestation/v1/webhooks_pb.js';
import type { Sql } from '../../../src/server/store/database/connect.js';
import { recordAttempts } from '../../../src/server/store/webhooks/webhook-attempts.js';
import {
  type ClaimedDelivery,
  claimDeliveries,
  listDeliveries,
  pruneDeliveries,
} from '../../../src/server/store/webhooks/webhook-deliveries.js';
import { openPlanner } from '../../support/judging/plans.js';
import { testDatabase } from '../../support/servers/shared-servers.js';

const WEBHOOKS = 20;
const DAYS = 30;
const PER_DAY = 20;
const DAY_MS = 86_400_000;
const WAITING = 2_000;

const planner = openPlanner(await testDatabase(t));
t.teardown(planner.close);
const { sql } = planner;

/** Inserts a day's deliveries of every subscription, that many days ago. */
async function fillDay(daysAgo: number): Promise<void> {
  const atMs = Date.now() - daysAgo * DAY_MS;
  const rows = Array.from({ length: WEBHOOKS * PER_DAY }, (_, i) => ({
    webhook_id: `whk_${i % WEBHOOKS}`,
    id: `dlv_${ulid(atMs)}`,
    submission_id: `sub_${ulid(atMs)}`,
    created_at: new Date(atMs),
  }));
  await sql`INSERT INTO webhook_delivery ${sql(rows)}`;
}

t.test('pruning reads deleted rows only, also where new rows replace old ones', async (t) => {
  await sql`INSERT INTO project (id, name) VALUES ('prj', 'a test')`;
  await sql`
    INSERT INTO webhook (id, project_id, environment, url, events, secret)
    SELECT 'whk_' || i, 'prj', 1, '', '{1}', '' FROM generate_series(0, ${WEBHOOKS - 1}) i`;
  for (let day = 2 * DAYS; day > DAYS; day--) await fillDay(day);
  await sql`VACUUM (ANALYZE) webhook_delivery`;
  for (let day = DAYS; day > 0; day--) {
    t.equal(await pruneDeliveries(sql, (day + DAYS - 0.5) * DAY_MS, 10_000), WEBHOOKS * PER_DAY);
    await sql`VACUUM webhook_delivery`;
    await fillDay(day);
  }
  await sql`VACUUM (ANALYZE)`;
  for (const planFor of ['these', 'any'] as const) {
    const nothing = await planner.explain(() => pruneDeliveries(sql, (DAYS + 1) * DAY_MS, 10_000), planFor);
    t.ok(nothing.rows <= 2 * WEBHOOKS, `${planFor}: ${nothing.rows} rows, by ${nothing.scans}`);
  }
});

t.test("a submission's deliveries are found without reading others", async (t) => {
  const [row] = await sql<{ submissionId: string }[]>`
    SELECT submission_id AS "submissionId" FROM webhook_delivery WHERE webhook_id = 'whk_3' LIMIT 1`;
  const query = { status: undefined, submissionId: row?.submissionId, before: 'dlv_~', limit: 51 };
  for (const planFor of ['these', 'any'] as const) {
    const plan = await planner.explain(() => listDeliveries(sql, 'whk_3', query), planFor);
    t.ok(plan.rows === 1, `${planFor}: ${JSON.stringify(plan)}`);
  }
});

/** Rows of deliveries that a transaction has read so far. */
async function deliveriesRead(tx: Sql): Promise<number> {
  const [row] = await tx<{ n: number }[]>`
    SELECT (seq_tup_read + coalesce(idx_tup_fetch, 0))::float8 AS n FROM pg_stat_xact_user_tables
    WHERE relname = 'webhook_delivery'`;
  return row?.n ?? 0;
}

/** The record of an attempt that was delivered. */
function delivered({ webhookId, id, attempt }: ClaimedDelivery) {
  const result = {
    durationMs: 1,
    statusCode: 204,
    error: null,
    answer: '',
    isGone: false,
    retryAfterMs: null,
  };
  const made = {
    url: 'https://example.com/',
    at: new Date(),
    lease: 0,
    step: 0,
    status: DeliveryStatus.DELIVERED,
  };
  return { ...result, ...made, webhookId, deliveryId: id, number: attempt };
}

t.test('a claim and a record read changed rows only, by plans of empty tables', async (t) => {
  await sql`TRUNCATE webhook_delivery, webhook_attempt`;
  const webhookId = 'whk_0';
  const work = async (tx: Sql) => {
    const ids = Array.from({ length: 8 }, () => `dlv_${ulid()}`);
    const claimed = await claimDeliveries(tx, {
      webhookId,
      lease: 0,
      leaseMs: 60_000,
      visibleMs: 60_000,
      ids,
    });
    await recordAttempts(tx, claimed.map(delivered));
    return claimed.length;
  };
  await work(sql);
  const later = new Date(Date.now() + DAY_MS);
  const rows = Array.from({ length: WAITING }, () => ({
    webhook_id: webhookId,
    id: `dlv_${ulid()}`,
    next_attempt_at: later,
  }));
  await sql`INSERT INTO webhook_delivery ${sql(rows)}`;
  await sql`
    UPDATE webhook_delivery SET next_attempt_at = created_at
    WHERE id IN (SELECT id FROM webhook_delivery ORDER BY id LIMIT 8)`;
  await sql.begin(async (tx) => {
    const before = await deliveriesRead(tx);
    t.equal(await work(tx), 8);
    const read = (await deliveriesRead(tx)) - before;
    t.ok(read < 100, `${read} rows were read, of ${WAITING}`);
  });
});
