/** Sending events: how many at a time, by how many workers, and sending them again. */
import type { ServerResponse } from 'node:http';
import t, { type Test } from 'tap';
import { DeliveryStatus } from '../../../../gen/attestation/v1/webhooks_pb.js';
import { webhookJob } from '../../../../src/server/jobs/job.js';
import type { Pipeline } from '../../../../src/server/pipeline/pipeline.js';
import { runJob } from '../../../../src/server/pipeline/stages.js';
import {
  redeliver,
  redeliverFailed,
  requestRedelivery,
} from '../../../../src/server/webhooks/store/webhook-deliveries.js';
import { letPass } from '../../../support/breaking/database-clock.js';
import { drain, makeWitness, openPipeline, type TestPipeline } from '../../../support/pipeline.js';
import { until } from '../../../support/until.js';
import { answering, startReceiver } from '../../../support/webhooks/receiver.js';
import {
  attemptsOf,
  deliveriesOf,
  NOBODY,
  statusesOf,
  submissionsIn,
  submitAndDrain,
  submitFor,
  subscribe,
  type TestWebhook,
  webhookOf,
} from '../../../support/webhooks/webhooks.js';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

const { PENDING, DELIVERED, FAILED } = DeliveryStatus;
const witness = await makeWitness(t, 'w');
const open = (test: Test) => openPipeline(test, [witness]);

/** Sets how many deliveries a project may attempt. */
async function limit({ pool }: TestPipeline, { projectId }: TestWebhook, perSecond: number, burst: number) {
  await pool`
    UPDATE project SET webhook_deliveries_per_second = ${perSecond}, webhook_deliveries_burst = ${burst}
    WHERE id = ${projectId}`;
}

/** The same worker whose sending is another. */
function sendingBy(test: TestPipeline, send: Pipeline['webhooks']['send']): Pipeline {
  return test.another({ webhooks: { ...test.pipeline.webhooks, active: new Map(), send } });
}

t.test(
  'over the limit of the project deliveries wait, over all its subscriptions and all workers',
  async (t) => {
    const test = await open(t);
    const receiver = await startReceiver(t);
    const first = await subscribe(test, receiver);
    const second = await subscribe(test, receiver, { projectId: first.projectId });
    await limit(test, first, 0, 10);
    const ids = await submitFor(test, first.projectId, 20);
    const worker = test.another();
    await drain(test.pipeline);
    for (let i = 0; i < 3; i++) {
      await Promise.all([runJob(test.pipeline, webhookJob(first.id)), runJob(worker, webhookJob(second.id))]);
    }
    const before = receiver.received.length;
    t.equal(before, 10, 'of 40');
    const [row] = await test.pool`SELECT count(*)::int AS n FROM webhook_delivery`;
    t.equal(row?.n, before, 'rows are made when the token is granted');
    await limit(test, first, 1_000, 1_000);
    await letPass(test, 2 * HOUR_MS);
    await drain(test.pipeline);
    t.same(submissionsIn(receiver.received), [...ids, ...ids].sort(), 'none is lost');
  },
);

t.test('a clock that is set back neither sends deliveries early nor delays them', async (t) => {
  const test = await open(t);
  const receiver = await startReceiver(t);
  const webhook = await subscribe(test, receiver);
  await limit(test, webhook, 0, 10);
  await letPass(test, HOUR_MS);
  await submitFor(test, webhook.projectId, 30);
  await drain(test.pipeline);
  t.equal(receiver.received.length, 10);
  await letPass(test, -HOUR_MS);
  const goOn = async () => {
    await test.pool`UPDATE webhook SET due_at = clock_timestamp()`;
    await drain(test.pipeline);
  };
  await goOn();
  t.equal(receiver.received.length, 10);
  await limit(test, webhook, 1, 10);
  await letPass(test, 20 * SECOND_MS);
  await goOn();
  t.equal(receiver.received.length, 20, 'an hour has not to pass again');
});

t.test('an endpoint that fails gets one request at a time, and a good one many', async (t) => {
  const test = await open(t);
  const receiver = await startReceiver(t);
  const webhook = await subscribe(test, receiver);
  const held: ServerResponse[] = [];
  receiver.behave((response) => {
    held.push(response);
    if (receiver.open.most >= 4) for (const one of held.splice(0)) one.writeHead(204).end();
  });
  await submitAndDrain(test, webhook.projectId, 200);
  t.ok(receiver.open.most >= 4, `${receiver.open.most} at a time`);
  receiver.behave(answering(500));
  await submitAndDrain(test, webhook.projectId, 1);
  receiver.open.most = 0;
  await submitAndDrain(test, webhook.projectId, 20);
  t.equal(receiver.open.most, 1);
});

t.test('one worker sends for a subscription at a time', async (t) => {
  const test = await open(t);
  const receiver = await startReceiver(t);
  const webhook = await subscribe(test, receiver);
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  receiver.behave((response) => void held.then(() => response.writeHead(204).end()));
  await submitFor(test, webhook.projectId, 30);
  const running = drain(test.pipeline);
  await until('it is called as often as a new endpoint is at a time', () => receiver.received.length === 4);
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
    const webhook = await subscribe(test, receiver);
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

t.test('a delivery can be sent again, and all failed ones since a time, as the same events', async (t) => {
  const test = await open(t);
  const receiver = await startReceiver(t);
  const webhook = await subscribe(test, receiver);
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
  await requestRedelivery(test.pool, webhook.id, new Date(Date.now() + 59 * MINUTE_MS));
  await drain(test.pipeline);
  t.equal(receiver.received.length, 3, 'those of before stay failed');
  t.same((await statusesOf(test, webhook)).sort(), [DELIVERED, DELIVERED, DELIVERED, FAILED, FAILED]);
});

t.test('tests that fail again end with that, however many are sent again', async (t) => {
  const test = await open(t);
  const webhook = await subscribe(test, NOBODY);
  await test.pool`
    INSERT INTO webhook_delivery (webhook_id, id, status, attempt)
    SELECT ${webhook.id}, 'dlv_' || '7' || lpad(i::text, 25, '0'), ${FAILED}, 1 FROM generate_series(1, 1500) i`;
  for (const limit of [1_000, 1_000]) {
    await test.pool.begin((tx) => redeliverFailed(tx, webhook.id, new Date(0), limit));
    await test.pool`UPDATE webhook_delivery SET status = ${FAILED}, attempt = attempt + 1 WHERE status = ${PENDING}`;
  }
  await test.pool.begin((tx) => redeliverFailed(tx, webhook.id, new Date(0), 1_000));
  const [row] = await test.pool`
    SELECT count(*) FILTER (WHERE attempt = 2)::int AS twice, count(*) FILTER (WHERE status <> ${FAILED})::int AS more
    FROM webhook_delivery`;
  t.same(row, { twice: 1_500, more: 0 });
});

t.test('a redelivery request during another one is carried out as well', async (t) => {
  const test = await open(t);
  const webhook = await subscribe(test, NOBODY);
  const since = new Date(0);
  const wanted = async () => (await test.pool`SELECT redeliver_since FROM webhook`)[0]?.redeliver_since;
  await requestRedelivery(test.pool, webhook.id, since);
  let asked: Promise<void> | undefined;
  await test.pool.begin(async (tx) => {
    await redeliverFailed(tx, webhook.id, since, 10);
    asked = requestRedelivery(test.pool, webhook.id, since);
  });
  await asked;
  t.same(await wanted(), since);
});

t.test('of two redelivery requests in any order the earlier start applies', async (t) => {
  const test = await open(t);
  const webhook = await subscribe(test, NOBODY);
  const [early, late] = [new Date(1_000), new Date(2_000)];
  for (const times of [
    [early, late],
    [late, early],
  ]) {
    await test.pool`UPDATE webhook SET redeliver_since = NULL`;
    for (const since of times) await requestRedelivery(test.pool, webhook.id, since);
    t.same((await test.pool`SELECT redeliver_since FROM webhook`)[0]?.redeliver_since, early);
  }
});

t.test('of an error, which may quote the receiver, as much is kept as a person reads', async (t) => {
  const test = await open(t);
  const webhook = await subscribe(test, NOBODY);
  const error = `\0${'x'.repeat(498)}\u{1f600}${'x'.repeat(100_000)}`;
  const failing = sendingBy(test, async () => ({ outcome: 'failed', durationMs: 1, error, answer: '' }));
  await submitFor(test, webhook.projectId, 1);
  await drain(failing);
  t.same(
    (await attemptsOf(test, webhook)).map((attempt) => attempt.error),
    [`\ufffd${'x'.repeat(498)}\ufffd`],
  );
});

t.test('the first 2 KiB of any response are kept, and a redirect is not followed', async (t) => {
  const test = await open(t);
  const receiver = await startReceiver(t);
  const elsewhere = await startReceiver(t);
  const webhook = await subscribe(test, receiver);
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
