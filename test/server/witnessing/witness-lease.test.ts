/** What a worker had leased when it died, stopped or lost the database is taken up again within seconds. */
import type { ServerResponse } from 'node:http';
import t, { type Test } from 'tap';
import { BatchStatus } from '../../../gen/attestation/v1/batches_pb.js';
import { DeliveryStatus } from '../../../gen/attestation/v1/webhooks_pb.js';
import { sealJob, webhookJob, witnessJob } from '../../../src/server/jobs/job.js';
import { LEASE_MS } from '../../../src/server/jobs/lease.js';
import { guardedConnector } from '../../../src/server/net/destination.js';
import { runJob } from '../../../src/server/pipeline/stages.js';
import { openWebhookSender } from '../../../src/server/webhooks/delivery/send.js';
import { leaseWebhook } from '../../../src/server/webhooks/store/webhook-leases.js';
import { leaseWitness } from '../../../src/server/witnessing/store/witness-leases.js';
import { letPass } from '../../support/breaking/database-clock.js';
import { statuses } from '../../support/judging/batch-states.js';
import { drain, makeWitness, openPipeline, type TestPipeline } from '../../support/pipeline.js';
import { until } from '../../support/until.js';
import { startReceiver } from '../../support/webhooks/receiver.js';
import {
  notifyAll,
  statusesOf,
  submissionsIn,
  submitFor,
  subscribe,
} from '../../support/webhooks/webhooks.js';

const { SEALED, WITNESSED } = BatchStatus;
const { DELIVERED } = DeliveryStatus;
/** Nearly the time of a lease, and a moment more than what is left of it. */
const MOST_OF_LEASE_MS = LEASE_MS - 1_000;

/** What is left of the lease that is held, in milliseconds; undefined while none is. */
async function leaseLeft({ pool }: TestPipeline, table: string): Promise<number | undefined> {
  const [row] = await pool<{ ms: number }[]>`
    SELECT (extract(epoch FROM leased_until - clock_timestamp()) * 1000)::float8 AS ms FROM ${pool(table)}
    WHERE leased_until IS NOT NULL`;
  return row?.ms;
}

/** Until the lease was renewed after most of it had passed. */
async function untilRenewed(test: TestPipeline, table: string): Promise<void> {
  await until('the lease is renewed', async () => ((await leaseLeft(test, table)) ?? 0) > 2_000);
}

/** Whether a worker that died now would be waited for no longer than a lease lasts. */
async function isOfSeconds(t: Test, test: TestPipeline, table: string): Promise<void> {
  const left = await leaseLeft(test, table);
  t.ok(left !== undefined && left <= LEASE_MS, `${left} ms are left of the lease`);
}

t.test('the lease of a dead worker expires within seconds', async (t) => {
  t.ok(LEASE_MS <= 5_000);
  const witness = await makeWitness(t, 'tsa');
  const test = await openPipeline(t, [witness]);
  await test.submit(1);
  await runJob(test.pipeline, sealJob(test.logId));
  await leaseWitness(test.pool, test.logId, 'tsa', LEASE_MS);
  await drain(test.pipeline);
  t.same(await statuses(test), [SEALED]);
  await letPass(test, 5_000);
  await drain(test.pipeline);
  t.same(await statuses(test), [WITNESSED]);
});

t.test('the lease is renewed during a slow request', async (t) => {
  const witness = await makeWitness(t, 'slow');
  let answerNow = () => {};
  witness.manner = async (answer) => {
    await new Promise<void>((resolve) => {
      answerNow = resolve;
    });
    return answer();
  };
  const test = await openPipeline(t, [witness]);
  await test.submit(1);
  await runJob(test.pipeline, sealJob(test.logId));
  const settings = { ...test.pipeline.settings, witnessTimeoutMs: 600_000 };
  const asking = runJob(test.another({ settings }), witnessJob(test.logId, 'slow'));
  await until('it is asked', () => witness.asked === 1);
  await isOfSeconds(t, test, 'witness_state');
  for (let round = 0; round < 3; round++) {
    await letPass(test, MOST_OF_LEASE_MS);
    await untilRenewed(test, 'witness_state');
    await isOfSeconds(t, test, 'witness_state');
    await runJob(test.another(), witnessJob(test.logId, 'slow'));
  }
  t.equal(witness.asked, 1);
  answerNow();
  await asking;
  await drain(test.pipeline);
  t.same(await statuses(test), [WITNESSED]);
  const [state] =
    await test.pool`SELECT leased_until FROM witness_state WHERE witness = 'slow' AND log_id = 1`;
  t.equal(state?.leased_until, null);
});

t.test('a worker that stops gives a witness that is silent back, and it counts as no failure', async (t) => {
  const witness = await makeWitness(t, 'silent');
  const aborting = new AbortController();
  witness.manner = () => new Promise(() => {});
  const test = await openPipeline(t, [witness]);
  await test.submit(1);
  await runJob(test.pipeline, sealJob(test.logId));
  const stopping = test.another({ aborting: aborting.signal });
  const asking = runJob(stopping, witnessJob(test.logId, 'silent'));
  await until('it is asked', () => witness.asked === 1);
  aborting.abort();
  await asking;
  const [state] = await test.pool`
    SELECT leased_until, failures FROM witness_state WHERE witness = 'silent' AND log_id = 1`;
  t.same(state, { leased_until: null, failures: 0 });
});

t.test('a subscription is sent to again as soon after its worker died', async (t) => {
  const test = await openPipeline(t, [await makeWitness(t, 'tsa')]);
  const receiver = await startReceiver(t);
  const webhook = await subscribe(test, receiver);
  await submitFor(test, webhook.projectId, 1);
  await notifyAll(test);
  await leaseWebhook(test.pool, webhook.id, LEASE_MS);
  await runJob(test.pipeline, webhookJob(webhook.id));
  t.equal(receiver.received.length, 0);
  await letPass(test, 5_000);
  await runJob(test.pipeline, webhookJob(webhook.id));
  t.equal(receiver.received.length, 1);
});

t.test('while a slow endpoint is sent to, the lease of its subscription is renewed', async (t) => {
  const test = await openPipeline(t, [await makeWitness(t, 'tsa')]);
  const receiver = await startReceiver(t);
  const held: ServerResponse[] = [];
  receiver.behave((response) => void held.push(response));
  const webhook = await subscribe(test, receiver);
  await submitFor(test, webhook.projectId, 1);
  await notifyAll(test);
  const sending = runJob(test.pipeline, webhookJob(webhook.id));
  await until('it is sent', () => held.length === 1);
  await isOfSeconds(t, test, 'webhook');
  for (let round = 0; round < 2; round++) {
    await letPass(test, MOST_OF_LEASE_MS);
    await untilRenewed(test, 'webhook');
    await isOfSeconds(t, test, 'webhook');
  }
  t.equal(await leaseWebhook(test.pool, webhook.id, LEASE_MS), undefined);
  for (const response of held) response.writeHead(204).end();
  await sending;
  t.same(await statusesOf(test, webhook), [DELIVERED]);
});

t.test('deliveries that a stopping worker has claimed and not sent are due at once', async (t) => {
  const test = await openPipeline(t, [await makeWitness(t, 'tsa')]);
  const receiver = await startReceiver(t);
  const held: ServerResponse[] = [];
  receiver.behave((response) => void held.push(response));
  const webhook = await subscribe(test, receiver);
  const ids = await submitFor(test, webhook.projectId, 40);
  await notifyAll(test);
  const { webhooks } = test.pipeline;
  const aborting = new AbortController();
  const connect = guardedConnector({ allowInsecure: true });
  const sender = openWebhookSender({ clock: Date.now, aborting: aborting.signal, connect });
  t.teardown(sender.close);
  const stopping = { ...webhooks, active: new Map(), send: sender.send, aborting: aborting.signal };
  const sending = runJob(
    test.another({ webhooks: { ...stopping, stopping: aborting.signal } }),
    webhookJob(webhook.id),
  );
  await until('some are sent', () => held.length > 0);
  aborting.abort();
  await sending;
  const [due] = await test.pool`
    SELECT count(*)::int AS n, min(due_at) <= clock_timestamp() AS due FROM webhook_delivery d
    JOIN webhook w ON w.id = d.webhook_id WHERE d.status = 1 AND d.next_attempt_at > clock_timestamp() GROUP BY w.id`;
  t.equal(due, undefined, 'none waits to be given up for lost');
  receiver.behave((response) => void response.writeHead(204).end());
  await runJob(test.pipeline, webhookJob(webhook.id));
  t.same(new Set(submissionsIn(receiver.received)), new Set(ids));
});
