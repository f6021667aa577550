/** Sending events: the schedule, who waits for whom, and what endpoints that fail do to their own subscription alone. */
import t, { type Test } from 'tap';
import { AuditAction } from '../../gen/attestation/admin/v1/audit_pb.js';
import { EventType, WebhookStatus } from '../../gen/attestation/v1/webhooks_pb.js';
import { encryptSecret } from '../../src/encryption.js';
import { webhookJob } from '../../src/pipeline/job.js';
import type { Pipeline } from '../../src/pipeline/pipeline.js';
import { findDueJobs } from '../../src/pipeline/reconcile.js';
import { retryDelayMs } from '../../src/pipeline/retry-schedule.js';
import { createSlots } from '../../src/pipeline/slots.js';
import { runJob } from '../../src/pipeline/stages.js';
import { pruneDeliveries, redeliver, requestRedelivery } from '../../src/store/webhook-deliveries.js';
import { pruneRanges } from '../../src/store/webhook-ranges.js';
import {
  deleteWebhook,
  pruneWebhooks,
  rotateWebhookSecret,
  updateWebhook,
} from '../../src/store/webhooks.js';
import { drain, makeWitness, type TestPipeline } from '../support/pipeline.js';
import { openPipeline } from '../support/pipeline-state.js';
import { answering, startReceiver } from '../support/receiver.js';
import { until } from '../support/until.js';
import {
  attemptsOf,
  deliveriesOf,
  letPass,
  nextAttemptMs,
  signaturesBy,
  submissionsIn,
  submitAndDrain,
  submitFor,
  subscribe,
  type TestWebhook,
  webhookOf,
} from '../support/webhooks.js';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const STEPS_MS = [
  5 * SECOND_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  14 * HOUR_MS,
  20 * HOUR_MS,
  24 * HOUR_MS,
];
const PENDING = 1;
const DELIVERED = 2;
const FAILED = 3;

const witness = await makeWitness(t, 'w');
const open = (test: Test) => openPipeline(test, [witness]);

async function statusesOf(test: TestPipeline, webhook: TestWebhook): Promise<number[]> {
  return (await deliveriesOf(test, webhook)).map(({ status }) => status);
}

/** Sets how many deliveries a project may attempt. */
async function limit({ pool }: TestPipeline, { projectId }: TestWebhook, perSecond: number, burst: number) {
  await pool`
    UPDATE project SET webhook_deliveries_per_second = ${perSecond}, webhook_deliveries_burst = ${burst}
    WHERE id = ${projectId}`;
}

/** Runs what is due up to the events, which are not sent. */
async function notifyAll({ pipeline }: TestPipeline): Promise<void> {
  for (;;) {
    const due = (await findDueJobs(pipeline)).filter(({ stage }) => stage.case !== 'webhook');
    for (const job of due) await runJob(pipeline, job);
    if (due.every(({ stage }) => stage.case === 'settle')) return;
  }
}

/** The same worker whose sending is another. */
function sendingBy(test: TestPipeline, send: Pipeline['webhooks']['send']): Pipeline {
  return test.another({ webhooks: { ...test.pipeline.webhooks, active: new Set(), send } });
}

t.test('a delivery is tried after each step, give or take a fifth, and then no more', async (t) => {
  for (const [step, ms] of STEPS_MS.entries()) {
    t.equal(retryDelayMs(step, 0), ms * 0.8);
    t.equal(retryDelayMs(step, 0.5), ms);
    t.ok((retryDelayMs(step, 0.999_999) ?? 0) <= ms * 1.2);
    t.equal(retryDelayMs(step, 0.5, ms * 1.5), ms * 1.5, 'Retry-After is honoured');
    t.equal(retryDelayMs(step, 0.5, ms * 100), ms * 2, 'up to twice the step');
    t.equal(retryDelayMs(step, 0.5, 1), ms, 'and never sooner');
  }
  t.equal(retryDelayMs(STEPS_MS.length, 0.5), undefined);
});

t.test(
  'an endpoint that fails gets the same event at each step of the schedule, until it has failed',
  async (t) => {
    const test = await open(t);
    const receiver = await startReceiver(t);
    receiver.behave(answering(500, 'out of order'));
    const webhook = await subscribe(test, receiver.url);
    await submitAndDrain(test, webhook.projectId, 1);
    for (const [step, ms] of STEPS_MS.entries()) {
      t.equal(receiver.received.length, step + 1);
      const waits = await nextAttemptMs(test, webhook);
      t.ok(waits > ms * 0.8 - 5_000 && waits <= ms * 1.2, `step ${step}: ${waits} ms`);
      await letPass(test, waits - 2_000);
      await drain(test.pipeline);
      if (waits > 3_000) t.equal(receiver.received.length, step + 1, 'not before its time');
      await letPass(test, 2_500);
      await drain(test.pipeline);
    }
    t.equal(receiver.received.length, 10);
    t.equal(new Set(receiver.received.map(({ event }) => event.id)).size, 1);
    t.same(await statusesOf(test, webhook), [FAILED]);
    const attempts = await attemptsOf(test, webhook);
    t.same(
      attempts.map(({ number }) => number),
      [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    );
    t.match(attempts[0], { statusCode: 500, error: /500/, answer: 'out of order' });
    await letPass(test, 3 * DAY_MS);
    await drain(test.pipeline);
    t.equal(receiver.received.length, 10, 'it is over');
  },
);

t.test('an endpoint that is back gets what waited, and its subscription is healthy again', async (t) => {
  const test = await open(t);
  const receiver = await startReceiver(t);
  receiver.behave(answering(503, '', { 'retry-after': '8' }));
  const webhook = await subscribe(test, receiver.url);
  const ids = await submitAndDrain(test, webhook.projectId, 3);
  t.ok((await webhookOf(test, webhook)).failingSince);
  for (const { nextAttemptAt } of await deliveriesOf(test, webhook))
    t.ok(nextAttemptAt.getTime() - Date.now() > 6_000, 'Retry-After was honoured');
  receiver.behave(answering(200, 'thanks'));
  await letPass(test, 10 * SECOND_MS);
  await drain(test.pipeline);
  t.same(submissionsIn(receiver.received.slice(3)), ids.sort());
  t.same(await statusesOf(test, webhook), [DELIVERED, DELIVERED, DELIVERED]);
  t.equal((await webhookOf(test, webhook)).failingSince, null);
});

t.test('410 disables a subscription at once', async (t) => {
  const test = await open(t);
  const receiver = await startReceiver(t);
  receiver.behave(answering(410));
  const webhook = await subscribe(test, receiver.url);
  await submitAndDrain(test, webhook.projectId, 5);
  t.match(await webhookOf(test, webhook), { status: WebhookStatus.DISABLED, disabledReason: /410/ });
  const heard = receiver.received.length;
  t.ok(heard < 5 + 1);
  const noted =
    await test.pool`SELECT project_id, action, detail FROM audit_entry WHERE resource_id = ${webhook.id}`;
  t.match(noted, [
    { project_id: webhook.projectId, action: AuditAction.WEBHOOK_DISABLED, detail: { reason: /410/ } },
  ]);
  await submitAndDrain(test, webhook.projectId, 1);
  t.equal(receiver.received.length, heard, 'nothing more is sent');
});

t.test(
  'five days of nothing but failures disable a subscription; one success within them does not',
  async (t) => {
    const test = await open(t);
    const receiver = await startReceiver(t);
    receiver.behave(answering(500));
    const webhook = await subscribe(test, receiver.url);
    const failOnce = async () => {
      await submitAndDrain(test, webhook.projectId, 1);
      return (await webhookOf(test, webhook)).status;
    };
    t.equal(await failOnce(), WebhookStatus.ACTIVE);
    await letPass(test, 4 * DAY_MS);
    t.equal(await failOnce(), WebhookStatus.ACTIVE);
    receiver.behave(answering(204));
    await submitAndDrain(test, webhook.projectId, 1);
    receiver.behave(answering(500));
    await letPass(test, 2 * DAY_MS);
    t.equal(await failOnce(), WebhookStatus.ACTIVE, 'the four days before do not count');
    await letPass(test, 5 * DAY_MS);
    t.equal(await failOnce(), WebhookStatus.DISABLED);
    t.match((await webhookOf(test, webhook)).disabledReason, /five days/);
    const heard = receiver.received.length;
    receiver.behave(answering(204));
    await letPass(test, DAY_MS);
    await drain(test.pipeline);
    t.equal(receiver.received.length, heard);
    await updateWebhook(test.pool, webhook, webhook.id, {
      url: undefined,
      events: undefined,
      status: WebhookStatus.ACTIVE,
      disabledReason: '',
    });
    await drain(test.pipeline);
    t.ok(
      (await statusesOf(test, webhook)).every((status) => status === DELIVERED),
      'what waited goes on',
    );
  },
);

t.test(
  'over the limit of the project deliveries wait, over all its subscriptions and all workers',
  async (t) => {
    const test = await open(t);
    const receiver = await startReceiver(t);
    const first = await subscribe(test, receiver.url);
    const second = await subscribe(test, receiver.url, { projectId: first.projectId });
    await limit(test, first, 1, 10);
    const ids = await submitFor(test, first.projectId, 20);
    const worker = test.another();
    await drain(test.pipeline);
    for (let i = 0; i < 3; i++) {
      await Promise.all([runJob(test.pipeline, webhookJob(first.id)), runJob(worker, webhookJob(second.id))]);
    }
    const before = receiver.received.length;
    t.ok(before >= 10 && before <= 14, `${before} of 40 were sent`);
    const [row] = await test.pool`SELECT count(*)::int AS n FROM webhook_delivery`;
    t.equal(row?.n, before, 'rows are made when the token is granted');
    await test.pool`UPDATE webhook_tokens SET at = at + interval '1 hour'`;
    await drain(test.pipeline);
    t.equal(receiver.received.length, before);
    await limit(test, first, 1_000, 1_000);
    await test.pool`UPDATE webhook_tokens SET at = clock_timestamp() - interval '1 second'`;
    await letPass(test, MINUTE_MS);
    await drain(test.pipeline);
    t.same(submissionsIn(receiver.received), [...ids, ...ids].sort(), 'none is lost');
  },
);

t.test('an endpoint that fails gets one request at a time, and a good one many', async (t) => {
  const test = await open(t);
  const receiver = await startReceiver(t);
  const webhook = await subscribe(test, receiver.url);
  receiver.behave((response) => void setImmediate(() => response.writeHead(204).end()));
  await submitAndDrain(test, webhook.projectId, 200);
  t.ok(receiver.open.most > 4, `${receiver.open.most} at a time`);
  receiver.behave(answering(500));
  await submitAndDrain(test, webhook.projectId, 1);
  receiver.open.most = 0;
  await submitAndDrain(test, webhook.projectId, 20);
  t.equal(receiver.open.most, 1);
});

t.test('endpoints that never answer hold up nobody else', async (t) => {
  const test = await open(t);
  const dead = await startReceiver(t);
  const good = await startReceiver(t);
  dead.behave(() => {});
  const first = await subscribe(test, dead.url);
  const hanging = [first];
  for (let i = 0; i < 9; i++) hanging.push(await subscribe(test, dead.url, { projectId: first.projectId }));
  const other = await subscribe(test, good.url);
  const neighbour = await subscribe(test, good.url, { projectId: first.projectId });
  await submitFor(test, first.projectId, 50);
  await submitFor(test, other.projectId, 20);
  await notifyAll(test);
  const stuck = hanging.map(({ id }) => runJob(test.pipeline, webhookJob(id)));
  await until('every dead endpoint is being called', () => dead.open.now >= hanging.length);
  await runJob(test.pipeline, webhookJob(other.id));
  t.equal(good.received.length, 20, 'another project is not held up');
  await runJob(test.pipeline, webhookJob(neighbour.id));
  t.equal(good.received.length, 70, 'a good endpoint of the same project neither');
  t.ok(dead.open.now >= hanging.length, 'the dead ones still hang');
  await dead.close();
  await Promise.all(stuck);
});

t.test('each project has its share of the slots, and there is always one more', async (t) => {
  const slots = createSlots(12);
  t.equal(await slots.take('a', 100), 6);
  let served = '';
  const more = slots.take('a', 1).then((n) => {
    served += `a${n}`;
  });
  t.equal(await slots.take('b', 100), 4);
  t.equal(await slots.take('c', 2), 2);
  t.equal(served, '');
  slots.release('a', 6);
  await more;
  t.equal(served, 'a1');
  slots.release('a', 1);
  slots.release('b', 4);
  slots.release('c', 2);
  t.equal(await slots.take('d', 100), 6);
});

t.test('one worker sends for a subscription at a time', async (t) => {
  const test = await open(t);
  const receiver = await startReceiver(t);
  const webhook = await subscribe(test, receiver.url);
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  receiver.behave((response) => void held.then(() => response.writeHead(204).end()));
  await submitFor(test, webhook.projectId, 30);
  const running = drain(test.pipeline);
  await until('it is called as often as a new endpoint is at a time', () => receiver.received.length === 8);
  const heard = receiver.received.length;
  t.same(await runJob(test.another(), webhookJob(webhook.id)), { type: 'done' });
  t.equal(receiver.received.length, heard);
  release();
  await running;
  t.equal(receiver.received.length, 30);
});

t.test(
  'what a worker took and never recorded is sent again, and its late record changes nothing',
  async (t) => {
    const test = await open(t);
    const receiver = await startReceiver(t);
    const webhook = await subscribe(test, receiver.url);
    let recover = () => {};
    const stalled = sendingBy(
      test,
      () =>
        new Promise((resolve) => {
          recover = () => resolve({ outcome: 'failed', durationMs: 1, error: 'too late', answer: '' });
        }),
    );
    const ids = await submitFor(test, webhook.projectId, 1);
    const running = drain(stalled);
    await until('it is claimed', async () => (await deliveriesOf(test, webhook)).length === 1);
    await drain(test.pipeline);
    t.same(receiver.received, [], 'while the lease stands nobody else sends it');
    await letPass(test, 61 * SECOND_MS);
    await runJob(test.pipeline, webhookJob(webhook.id));
    t.same(submissionsIn(receiver.received), ids);
    recover();
    await running;
    t.same(await statusesOf(test, webhook), [DELIVERED]);
    t.same(
      (await attemptsOf(test, webhook)).map(({ number, error }) => [number, error]),
      [
        [1, 'too late'],
        [2, null],
      ],
    );
    t.equal((await webhookOf(test, webhook)).failingSince, null);
  },
);

t.test('after a rotation both secrets sign, for a day', async (t) => {
  const test = await open(t);
  const receiver = await startReceiver(t);
  const webhook = await subscribe(test, receiver.url);
  await submitAndDrain(test, webhook.projectId, 1);
  const next = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
  const stored = encryptSecret(test.pipeline.webhooks.keys, next, webhook.id);
  await rotateWebhookSecret(test.pool, webhook, webhook.id, stored, DAY_MS);
  await submitAndDrain(test, webhook.projectId, 1);
  await letPass(test, DAY_MS);
  await submitAndDrain(test, webhook.projectId, 1);
  t.same(
    receiver.received.map((one) => [signaturesBy(webhook.secret, one), signaturesBy(next, one)]),
    [
      [1, 0],
      [1, 1],
      [0, 1],
    ],
  );
});

t.test('a delivery can be sent again, and all failed ones since a time, as the same events', async (t) => {
  const test = await open(t);
  const receiver = await startReceiver(t);
  const webhook = await subscribe(test, receiver.url);
  await submitAndDrain(test, webhook.projectId, 2);
  const [first] = await deliveriesOf(test, webhook);
  await test.pool.begin((tx) => redeliver(tx, webhook.id, first?.id ?? ''));
  await drain(test.pipeline);
  t.equal(receiver.received.length, 3);
  t.equal(
    receiver.received[2]?.event.id,
    receiver.received.find(({ event }) => event.data.submission_id === first?.submissionId)?.event.id,
  );
  t.match(await deliveriesOf(test, webhook), [
    { status: DELIVERED, attempt: 2 },
    { status: DELIVERED, attempt: 1 },
  ]);

  await letPass(test, HOUR_MS);
  await test.pool`UPDATE webhook_delivery SET status = ${FAILED}`;
  await submitAndDrain(test, webhook.projectId, 3);
  await test.pool`UPDATE webhook_delivery SET status = ${FAILED}`;
  receiver.received.length = 0;
  await requestRedelivery(test.pool, webhook.id, new Date(Date.now() - MINUTE_MS));
  await drain(test.pipeline);
  t.equal(receiver.received.length, 3, 'those of before stay failed');
  t.same((await statusesOf(test, webhook)).sort(), [DELIVERED, DELIVERED, DELIVERED, FAILED, FAILED]);
});

t.test('nothing more is sent for a subscription that was deleted, and nothing is left of it', async (t) => {
  const test = await open(t);
  const receiver = await startReceiver(t);
  receiver.behave(answering(500));
  const webhook = await subscribe(test, receiver.url);
  await submitAndDrain(test, webhook.projectId, 3);
  const heard = receiver.received.length;
  await deleteWebhook(test.pool, webhook, webhook.id);
  await letPass(test, DAY_MS);
  await submitAndDrain(test, webhook.projectId, 1);
  t.equal(receiver.received.length, heard);
  const days = (n: number) => n * DAY_MS;
  t.equal(await pruneDeliveries(test.pool, days(30), 1_000), 0);
  await letPass(test, days(30));
  t.equal(await pruneDeliveries(test.pool, days(30), 2), 2);
  t.equal(await pruneDeliveries(test.pool, days(30), 2), 1);
  await pruneRanges(test.pool, days(30), 1_000);
  await pruneWebhooks(test.pool, days(30));
  const [row] = await test.pool`
    SELECT (SELECT count(*) FROM webhook)::int + (SELECT count(*) FROM webhook_delivery)::int
         + (SELECT count(*) FROM webhook_attempt)::int + (SELECT count(*) FROM webhook_range)::int AS n`;
  t.equal(row?.n, 0);
});

t.test('an answer is kept as far as 2 KiB, whatever is in it; a redirect is not followed', async (t) => {
  const test = await open(t);
  const receiver = await startReceiver(t);
  const elsewhere = await startReceiver(t);
  const webhook = await subscribe(test, receiver.url, { events: [EventType.ATTESTATION_WITNESSED] });
  receiver.behave(answering(400, `\0\ud800${'x'.repeat(100_000)}`));
  await submitAndDrain(test, webhook.projectId, 1);
  receiver.behave(answering(302, '', { location: elsewhere.url }));
  await letPass(test, 7 * SECOND_MS);
  await drain(test.pipeline);
  const [huge, redirect] = await attemptsOf(test, webhook);
  t.equal(huge?.statusCode, 400);
  t.ok(Buffer.byteLength(huge?.answer ?? '') <= 2_060);
  t.match(redirect, { statusCode: 302, error: /302/ });
  t.same(elsewhere.received, []);
  t.same(await statusesOf(test, webhook), [PENDING]);
});
