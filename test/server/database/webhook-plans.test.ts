import t from 'tap';
import { ulid } from 'ulid';
import { listDeliveries, pruneDeliveries } from '../../../src/server/webhooks/store/webhook-deliveries.js';
import { openPlanner } from '../../support/judging/plans.js';
import { testDatabase } from '../../support/servers/shared-servers.js';

const WEBHOOKS = 20;
const DAYS = 30;
const PER_DAY = 20;
const DAY_MS = 86_400_000;

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
