import t from 'tap';
import { ulid } from 'ulid';
import { DeliveryStatus } from '../../../gen/attestation/v1/webhooks_pb.js';
import { recordAttempts } from '../../../src/server/store/webhooks/webhook-attempts.js';
import {
  claimDeliveries,
  findDelivery,
  insertTestDelivery,
  redeliver,
} from '../../../src/server/store/webhooks/webhook-deliveries.js';
import { openPlanner } from '../../support/judging/plans.js';
import { testDatabase } from '../../support/servers/shared-servers.js';
import { until } from '../../support/until.js';

const url = await testDatabase(t);
const { sql, close } = openPlanner(url);
const other = openPlanner(url);
t.teardown(() => Promise.all([close(), other.close()]));

t.test('an attempt is recorded after a redelivery that it had to wait for', async (t) => {
  const webhookId = 'whk_0';
  const id = `dlv_${ulid()}`;
  await sql`INSERT INTO project (id, name) VALUES ('prj', 'a test')`;
  await sql`
    INSERT INTO webhook (id, project_id, environment, url, events, secret)
    VALUES (${webhookId}, 'prj', 1, '', '{1}', '')`;
  await insertTestDelivery(sql, webhookId, id);
  const claim = { webhookId, lease: 0, leaseMs: 60_000, visibleMs: 60_000, ids: [`dlv_${ulid()}`] };
  const [claimed] = await claimDeliveries(sql, claim);
  t.match(claimed, { id, attempt: 1 });
  const attempt = {
    ...{ webhookId, deliveryId: id, number: 1, lease: 0, status: DeliveryStatus.DELIVERED },
    ...{
      url: 'https://example.com/',
      at: new Date(),
      durationMs: 1,
      statusCode: 204,
      error: null,
      answer: '',
    },
    ...{ isGone: false, retryAfterMs: null },
  };
  const recorded = await sql.begin(async (tx) => {
    t.ok(await redeliver(tx, webhookId, id));
    const recording = recordAttempts(other.sql, [attempt]);
    await until('the record waits for the row', async () => {
      const [row] = await tx<{ n: number }[]>`
        SELECT count(*)::int AS n FROM pg_locks
        WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))`;
      return row?.n === 1;
    });
    return { recording };
  });
  await recorded.recording;
  t.match(await findDelivery(sql, webhookId, id), { status: DeliveryStatus.DELIVERED });
});
