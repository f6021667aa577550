/** Events and time: when a delivery is tried again, when a subscription is given up, and when history ends. */
import t, { type Test } from 'tap';
import { AuditAction } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import { DeliveryStatus, WebhookStatus } from '../../../../gen/attestation/v1/webhooks_pb.js';
import { retryDelayMs } from '../../../../src/server/webhooks/delivery/retry-schedule.js';
import { pruneDeliveries } from '../../../../src/server/webhooks/store/webhook-deliveries.js';
import { pruneRanges } from '../../../../src/server/webhooks/store/webhook-ranges.js';
import {
  deleteWebhook,
  pruneWebhooks,
  updateWebhook,
} from '../../../../src/server/webhooks/store/webhooks.js';
import { letPass } from '../../../support/breaking/database-clock.js';
import { drain, makeWitness, openPipeline, type TestPipeline } from '../../../support/pipeline.js';
import { answering, startReceiver } from '../../../support/webhooks/receiver.js';
import {
  attemptsOf,
  nextAttemptsMs,
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
const HISTORY_MS = 30 * DAY_MS;

const { DELIVERED, FAILED } = DeliveryStatus;
const witness = await makeWitness(t, 'w');
const open = (test: Test) => openPipeline(test, [witness]);

/** The audit entries that say that it was disabled. */
async function disablingsOf({ pool }: TestPipeline, { id }: TestWebhook) {
  return pool`
    SELECT project_id AS "projectId", detail FROM audit_entry
    WHERE resource_id = ${id} AND action = ${AuditAction.WEBHOOK_DISABLED}`;
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
    const webhook = await subscribe(test, receiver);
    const random = () => (receiver.received.length % 2 === 1 ? 0 : 0.999_999);
    const worker = test.another({ webhooks: { ...test.pipeline.webhooks, random } });
    await submitFor(test, webhook.projectId, 1);
    await drain(worker);
    for (const [step, ms] of STEPS_MS.entries()) {
      t.equal(receiver.received.length, step + 1);
      const [waitsMs = Number.NaN] = await nextAttemptsMs(test, webhook);
      const expectedMs = ms * (step % 2 === 0 ? 0.8 : 1.2);
      t.ok(Math.abs(waitsMs - expectedMs) < SECOND_MS, `step ${step}: ${waitsMs} ms`);
      await letPass(test, waitsMs - SECOND_MS);
      await drain(worker);
      t.equal(receiver.received.length, step + 1, 'not before its time');
      await letPass(test, 2 * SECOND_MS);
      await drain(worker);
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
    await drain(worker);
    t.equal(receiver.received.length, 10, 'it is over');
  },
);

t.test(
  'a recovered endpoint receives the waiting events, and its subscription is healthy again',
  async (t) => {
    const test = await open(t);
    const receiver = await startReceiver(t);
    receiver.behave(answering(503, '', { 'retry-after': '8' }));
    const webhook = await subscribe(test, receiver);
    const ids = await submitAndDrain(test, webhook.projectId, 3);
    t.ok((await webhookOf(test, webhook)).failingSince);
    const waitsMs = await nextAttemptsMs(test, webhook);
    t.ok(
      waitsMs.every((ms) => ms > 6 * SECOND_MS && ms <= 8 * SECOND_MS),
      'Retry-After was honoured',
    );
    receiver.behave(answering(200, 'thanks'));
    await letPass(test, 10 * SECOND_MS);
    await drain(test.pipeline);
    t.same(submissionsIn(receiver.received.slice(3)), ids.sort());
    t.same(await statusesOf(test, webhook), [DELIVERED, DELIVERED, DELIVERED]);
    t.equal((await webhookOf(test, webhook)).failingSince, null);
  },
);

t.test('410 disables a subscription at once', async (t) => {
  const test = await open(t);
  const receiver = await startReceiver(t);
  receiver.behave(answering(410));
  const webhook = await subscribe(test, receiver);
  await submitAndDrain(test, webhook.projectId, 5);
  t.match(await webhookOf(test, webhook), { status: WebhookStatus.DISABLED, disabledReason: /410/ });
  const heard = receiver.received.length;
  t.ok(heard < 5 + 1);
  t.match(await disablingsOf(test, webhook), [{ projectId: webhook.projectId, detail: { reason: /410/ } }]);
  await submitAndDrain(test, webhook.projectId, 1);
  t.equal(receiver.received.length, heard, 'nothing more is sent');
});

t.test(
  'five days of nothing but failures disable a subscription; one success within them does not',
  async (t) => {
    const test = await open(t);
    const receiver = await startReceiver(t);
    receiver.behave(answering(500));
    const webhook = await subscribe(test, receiver);
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
    t.match(await disablingsOf(test, webhook), [{ detail: { reason: /five days/ } }]);
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

t.test('nothing more is sent for a subscription that was deleted, and nothing is left of it', async (t) => {
  const test = await open(t);
  const receiver = await startReceiver(t);
  receiver.behave(answering(500));
  const webhook = await subscribe(test, receiver);
  await submitAndDrain(test, webhook.projectId, 3);
  const heard = receiver.received.length;
  await deleteWebhook(test.pool, webhook, webhook.id);
  await letPass(test, DAY_MS);
  await submitAndDrain(test, webhook.projectId, 1);
  t.equal(receiver.received.length, heard);
  await letPass(test, 29 * DAY_MS - MINUTE_MS);
  t.equal(await pruneDeliveries(test.pool, HISTORY_MS, 1_000), 0);
  await letPass(test, DAY_MS);
  t.equal(await pruneDeliveries(test.pool, HISTORY_MS, 2), 2);
  t.equal(await pruneDeliveries(test.pool, HISTORY_MS, 2), 1);
  await pruneRanges(test.pool, HISTORY_MS, 1_000);
  await pruneWebhooks(test.pool, HISTORY_MS);
  const [row] = await test.pool`
    SELECT (SELECT count(*) FROM webhook)::int + (SELECT count(*) FROM webhook_delivery)::int
         + (SELECT count(*) FROM webhook_attempt)::int + (SELECT count(*) FROM webhook_range)::int AS n`;
  t.equal(row?.n, 0);
});
