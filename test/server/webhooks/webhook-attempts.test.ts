import t from 'tap';
import { ulid } from 'ulid';
import { DeliveryStatus } from '../../../gen/attestation/v1/webhooks_pb.js';
import type { Sql } from '../../../src/server/database/connect.js';
import { type RecordedAttempt, recordAttempts } from '../../../src/server/webhooks/store/webhook-attempts.js';
import {
  claimDeliveries,
  findDelivery,
  insertTestDelivery,
  redeliver,
  returnClaims,
} from '../../../src/server/webhooks/store/webhook-deliveries.js';
import { openPlanner } from '../../support/judging/plans.js';
import { testDatabase } from '../../support/servers/shared-servers.js';
import { until } from '../../support/until.js';

const url = await testDatabase(t);
const { sql, close } = openPlanner(url);
const others = [openPlanner(url), openPlanner(url)] as const;
t.teardown(() => Promise.all([close(), ...others.map((other) => other.close())]));

const webhookId = 'whk_0';
await sql`INSERT INTO project (id, name) VALUES ('prj', 'a test')`;
await sql`
  INSERT INTO webhook (id, project_id, environment, url, events, secret)
  VALUES (${webhookId}, 'prj', 1, '', '{1}', '')`;

/** Claims so many new deliveries. Returns an attempt of each that delivered it, in the order of ids. */
async function attempted(count: number): Promise<RecordedAttempt[]> {
  for (let i = 0; i < count; i++) await insertTestDelivery(sql, webhookId, `dlv_${ulid(i)}`);
  const ids = Array.from({ length: count }, () => `dlv_${ulid()}`);
  const claim = { webhookId, lease: 0, leaseMs: 60_000, visibleMs: 60_000, ids };
  const claimed = await claimDeliveries(sql, claim);
  return claimed.map(({ id, attempt, step }) => ({
    ...{
      webhookId,
      deliveryId: id,
      number: attempt,
      step,
      lease: 0,
      url: 'https://example.com/',
      at: new Date(),
    },
    ...{ durationMs: 1, statusCode: 204, error: null, answer: '', status: DeliveryStatus.DELIVERED },
    ...{ isGone: false, retryAfterMs: null },
  }));
}

const [first, second] = others;
const pids = await Promise.all(
  others.map(({ sql }) => sql<{ pid: number }[]>`SELECT pg_backend_pid() AS pid`),
);

/** Waits until so many of the other connections wait for a lock. */
function untilWaiting(tx: Sql, count: number): Promise<boolean> {
  return until('statements wait for the transaction', async () => {
    const [row] = await tx<{ n: number }[]>`
      SELECT count(DISTINCT pid)::int AS n FROM pg_locks
      WHERE NOT granted AND pid = ANY (${pids.map(([row]) => row?.pid ?? 0)})`;
    return row?.n === count;
  });
}

t.test('an attempt is recorded after a redelivery that it had to wait for', async (t) => {
  const attempts = await attempted(1);
  const [{ deliveryId: id, number }] = attempts as [RecordedAttempt];
  t.equal(number, 1);
  const { recording } = await sql.begin(async (tx) => {
    t.ok(await redeliver(tx, webhookId, id));
    const recording = recordAttempts(first.sql, attempts);
    await untilWaiting(tx, 1);
    return { recording };
  });
  await recording;
  t.match(await findDelivery(sql, webhookId, id), { status: DeliveryStatus.DELIVERED });
});

t.test('two records of the same attempts, in opposite orders, do not deadlock', async (t) => {
  const attempts = await attempted(300);
  t.equal(attempts.length, 300);
  const ends = [attempts.at(0), attempts.at(-1)].map((attempt) => attempt?.deliveryId ?? '');
  const { recording } = await sql.begin(async (tx) => {
    await tx`SELECT FROM webhook_delivery WHERE webhook_id = ${webhookId} AND id = ANY (${ends}) FOR UPDATE`;
    const recording = Promise.all([
      recordAttempts(first.sql, attempts),
      recordAttempts(second.sql, attempts.toReversed()),
    ]);
    await untilWaiting(tx, 2);
    return { recording };
  });
  await t.resolves(recording);
});

t.test('a failure that is recorded again, its answer having been lost, counts once', async (t) => {
  const [delivered] = (await attempted(1)) as [RecordedAttempt];
  const failed = { ...delivered, status: DeliveryStatus.PENDING, statusCode: 500, retryAfterMs: 5_000 };
  for (let i = 0; i < 3; i++) await recordAttempts(sql, [failed]);
  t.match(await findDelivery(sql, webhookId, failed.deliveryId), { step: 1, status: DeliveryStatus.PENDING });
  await recordAttempts(sql, [{ ...delivered, step: 7 }]);
  t.match(await findDelivery(sql, webhookId, failed.deliveryId), { status: DeliveryStatus.DELIVERED });
});

t.test('a worker of before does not name the step', async (t) => {
  const [delivered] = (await attempted(1)) as [RecordedAttempt];
  const failed = {
    ...delivered,
    status: DeliveryStatus.PENDING,
    retryAfterMs: 5_000,
    step: undefined as never,
  };
  await recordAttempts(sql, [failed]);
  t.match(await findDelivery(sql, webhookId, failed.deliveryId), { step: 1 });
});

t.test('a claim that is returned leaves no trace', async (t) => {
  const [{ deliveryId: id, number }] = (await attempted(1)) as [RecordedAttempt];
  await returnClaims(sql, webhookId, [{ id, attempt: number }]);
  t.match(await findDelivery(sql, webhookId, id), { attempt: number - 1, status: DeliveryStatus.PENDING });
  await returnClaims(sql, webhookId, [{ id, attempt: number }]);
  t.match(await findDelivery(sql, webhookId, id), { attempt: number - 1 }, 'it is returned once');
});
