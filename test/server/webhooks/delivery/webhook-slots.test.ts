/** Deliveries that wait for a slot, and a worker that stops while deliveries wait. */
import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { DeliveryStatus, WebhookStatus } from '../../../../gen/attestation/v1/webhooks_pb.js';
import { webhookJob } from '../../../../src/server/jobs/job.js';
import { createProjectSlots } from '../../../../src/server/jobs/project-slots.js';
import type { Pipeline } from '../../../../src/server/pipeline/pipeline.js';
import { runJob } from '../../../../src/server/pipeline/stages.js';
import type { Webhooks } from '../../../../src/server/webhooks/delivery/webhook-stage.js';
import { deleteWebhook, updateWebhook } from '../../../../src/server/webhooks/store/webhooks.js';
import { makeWitness, openPipeline, type TestPipeline } from '../../../support/pipeline.js';
import { until } from '../../../support/until.js';
import { type Receiver, startReceiver } from '../../../support/webhooks/receiver.js';
import {
  deliveriesOf,
  notifyAll,
  statusesOf,
  submissionsIn,
  submitFor,
  subscribe,
  type TestWebhook,
} from '../../../support/webhooks/webhooks.js';

/** Longer than a lease is relied upon without a look at it. */
const LEASE_IS_OLD_MS = 1_200;
const { PENDING, DELIVERED } = DeliveryStatus;
const witness = await makeWitness(t, 'w');

/** A worker over the same tables, with other settings of its sending. */
function workerOf(test: TestPipeline, change: Partial<Webhooks>): Pipeline {
  return test.another({ webhooks: { ...test.pipeline.webhooks, active: new Map(), ...change } });
}

/** Makes an endpoint keep requests until the function that is returned is called. */
function hold(receiver: Receiver, answered = 0): () => void {
  const held: ServerResponse[] = [];
  let isHolding = true;
  receiver.behave((response) => {
    if (isHolding && receiver.received.length > answered) held.push(response);
    else response.writeHead(204).end();
  });
  return () => {
    isHolding = false;
    for (const response of held) response.writeHead(204).end();
  };
}

type Scene = { test: TestPipeline; webhook: TestWebhook; receiver: Receiver; ids: string[] };

/** A delivery waits for the only slot of its project. It is let go once `change` was made. */
async function waiting(t: Test, change: (scene: Scene) => Promise<unknown>): Promise<Scene> {
  const test = await openPipeline(t, [witness]);
  const [slow, receiver] = [await startReceiver(t), await startReceiver(t)];
  const first = await subscribe(test, slow);
  const webhook = await subscribe(test, receiver, { projectId: first.projectId });
  const letGo = hold(slow);
  const ids = await submitFor(test, first.projectId, 1);
  await notifyAll(test);
  const worker = workerOf(test, { slots: createProjectSlots(2) });
  const running = [runJob(worker, webhookJob(first.id))];
  await until('the slot is taken', () => slow.received.length === 1);
  running.push(runJob(worker, webhookJob(webhook.id)));
  const scene = { test, webhook, receiver, ids };
  await until('the other delivery is claimed', async () => (await statusesOf(test, webhook)).length === 1);
  await delay(LEASE_IS_OLD_MS);
  t.same(receiver.received, [], 'it waits for a slot');
  await change(scene);
  letGo();
  await Promise.all(running);
  return scene;
}

t.test('a delivery that waits for a slot is sent once there is one', async (t) => {
  const { test, webhook, receiver, ids } = await waiting(t, async () => {});
  t.same(submissionsIn(receiver.received), ids);
  t.same(await statusesOf(test, webhook), [DELIVERED]);
});

for (const [what, change] of [
  ['deleted', ({ test, webhook }: Scene) => deleteWebhook(test.pool, webhook, webhook.id)],
  [
    'disabled',
    ({ test, webhook }: Scene) =>
      updateWebhook(test.pool, webhook, webhook.id, {
        url: undefined,
        events: undefined,
        status: WebhookStatus.DISABLED,
        disabledReason: 'a test',
      }),
  ],
] as const) {
  t.test(`a subscription that is ${what} while its delivery waits for a slot is sent nothing`, async (t) => {
    const { receiver } = await waiting(t, change);
    t.same(receiver.received, []);
  });
}

t.test('endpoints that never respond leave a slot to another of their project', async (t) => {
  const test = await openPipeline(t, [witness]);
  const [dead, good] = [await startReceiver(t), await startReceiver(t)];
  const letGo = hold(dead);
  const first = await subscribe(test, dead);
  const second = await subscribe(test, dead, { projectId: first.projectId });
  const other = await subscribe(test, good, { projectId: first.projectId });
  await submitFor(test, first.projectId, 20);
  await notifyAll(test);
  const slots = createProjectSlots(12);
  const worker = workerOf(test, { slots });
  const running = [runJob(worker, webhookJob(first.id))];
  await until('half of the six are taken', () => dead.received.length === 3);
  running.push(runJob(worker, webhookJob(second.id)));
  await until('a third of them as well', () => dead.received.length === 5);
  await runJob(worker, webhookJob(other.id));
  t.same(new Set(await statusesOf(test, other)), new Set([DELIVERED]));
  t.equal(dead.received.length, 5);
  letGo();
  await Promise.all(running);
  const next = slots.open(first.projectId, () => {});
  next.want(6);
  t.same([next.take(), next.take(), next.take()], [true, true, true], 'no share is left open');
});

t.test('a worker that stops leaves the deliveries that it claimed and did not send to others', async (t) => {
  const test = await openPipeline(t, [witness]);
  const receiver = await startReceiver(t);
  const webhook = await subscribe(test, receiver);
  const ids = await submitFor(test, webhook.projectId, 40);
  await notifyAll(test);
  const letGo = hold(receiver, 4);
  const stopping = new AbortController();
  const running = runJob(workerOf(test, { stopping: stopping.signal }), webhookJob(webhook.id));
  await until('a larger claim was made', async () => (await statusesOf(test, webhook)).length >= 20);
  await until('it is called again', () => receiver.received.length > 4);
  stopping.abort();
  letGo();
  await running;
  t.ok(receiver.received.length < 20, `${receiver.received.length} were sent`);
  t.same(new Set(await statusesOf(test, webhook)), new Set([DELIVERED, PENDING]));
  await runJob(workerOf(test, {}), webhookJob(webhook.id));
  t.same(submissionsIn(receiver.received), ids.sort(), 'no delivery waits for its visibility timeout');
});

t.test('if a claim fails, the deliveries that were claimed and not sent are due at once', async (t) => {
  const test = await openPipeline(t, [witness]);
  const receiver = await startReceiver(t);
  const webhook = await subscribe(test, receiver);
  const ids = await submitFor(test, webhook.projectId, 40);
  await notifyAll(test);
  const letGo = hold(receiver, 4);
  const { newDeliveryId } = test.pipeline.webhooks;
  let made = 0;
  const worker = workerOf(test, {
    newDeliveryId: () => {
      if (++made > 20) throw new Error('the third claim fails');
      return newDeliveryId();
    },
  });
  const running = t.rejects(runJob(worker, webhookJob(webhook.id)), /the third claim fails/);
  await until('it has failed', () => made > 20);
  await until('requests are on their way', () => receiver.received.length > 4);
  letGo();
  await running;
  t.ok(receiver.received.length < 20, `${receiver.received.length} were sent`);
  await test.pool`UPDATE webhook SET leased_until = NULL`;
  await runJob(workerOf(test, {}), webhookJob(webhook.id));
  t.same(submissionsIn(receiver.received), ids.sort());
  t.same(new Set((await deliveriesOf(test, webhook)).map(({ attempt }) => attempt)), new Set([1]));
});
