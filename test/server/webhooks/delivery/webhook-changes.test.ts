/** A subscription that is changed while its events are being sent. */
import { randomBytes } from 'node:crypto';
import t, { type Test } from 'tap';
import { DeliveryStatus, WebhookStatus } from '../../../../gen/attestation/v1/webhooks_pb.js';
import { webhookJob } from '../../../../src/server/jobs/job.js';
import { encryptSecret } from '../../../../src/server/keys/encryption.js';
import { runJob } from '../../../../src/server/pipeline/stages.js';
import { formatSecret } from '../../../../src/server/webhooks/delivery/sign.js';
import {
  deleteWebhook,
  rotateWebhookSecret,
  updateWebhook,
} from '../../../../src/server/webhooks/store/webhooks.js';
import { letPass } from '../../../support/breaking/database-clock.js';
import { drain, makeWitness, openPipeline, type TestPipeline } from '../../../support/pipeline.js';
import { until } from '../../../support/until.js';
import {
  answering,
  type Behaviour,
  type Receiver,
  startReceiver,
} from '../../../support/webhooks/receiver.js';
import {
  notifyAll,
  statusesOf,
  submissionsIn,
  submitFor,
  subscribe,
  type TestWebhook,
  webhookOf,
} from '../../../support/webhooks/webhooks.js';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** How many requests an endpoint gets at a time before it has answered any. */
const FIRST = 4;

const witness = await makeWitness(t, 'w');

type Scene = { test: TestPipeline; receiver: Receiver; webhook: TestWebhook; ids: string[] };

/** Thirty events on their way to an endpoint, which has the first ones and answers as told, once `change` is made. */
async function changing(
  t: Test,
  change: (scene: Scene) => Promise<unknown>,
  answer: Behaviour = answering(204),
): Promise<Scene> {
  const test = await openPipeline(t, [witness]);
  const receiver = await startReceiver(t);
  const webhook = await subscribe(test, receiver);
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  receiver.behave((response, received) => void held.then(() => answer(response, received)));
  const scene = { test, receiver, webhook, ids: await submitFor(test, webhook.projectId, 30) };
  const running = drain(test.pipeline);
  await until('the endpoint has the first events', () => receiver.received.length === FIRST);
  await change(scene);
  release();
  await running;
  return scene;
}

const set = ({ test, webhook }: Scene, more: { url?: string; status?: WebhookStatus }) =>
  updateWebhook(test.pool, webhook, webhook.id, {
    url: more.url,
    events: undefined,
    status: more.status,
    disabledReason: 'a test',
  });

t.test('a new address receives the waiting events, and the old one nothing more', async (t) => {
  const next = await startReceiver(t);
  const { test, receiver, webhook, ids } = await changing(t, (scene) => {
    next.trust(scene.webhook.secret);
    return set(scene, { url: next.url });
  });
  t.equal(receiver.received.length, FIRST);
  await letPass(test, 2 * MINUTE_MS);
  await drain(test.pipeline);
  t.equal(receiver.received.length, FIRST);
  t.same([...submissionsIn(receiver.received), ...submissionsIn(next.received)].sort(), ids.sort());
  t.ok((await statusesOf(test, webhook)).every((status) => status === DeliveryStatus.DELIVERED));
});

for (const [what, answer] of [
  ['410', answering(410)],
  ['a failure after five days of them', answering(500)],
] as const) {
  t.test(`${what} from a former address does not disable the subscription`, async (t) => {
    const next = await startReceiver(t);
    const { test, webhook, ids } = await changing(
      t,
      async (scene) => {
        next.trust(scene.webhook.secret);
        await scene.test.pool`UPDATE webhook SET failing_since = clock_timestamp() - interval '6 days'`;
        await set(scene, { url: next.url });
      },
      answer,
    );
    t.match(await webhookOf(test, webhook), { status: WebhookStatus.ACTIVE, failingSince: null });
    await letPass(test, 2 * MINUTE_MS);
    await drain(test.pipeline);
    t.same(submissionsIn(next.received), ids.sort(), 'the new one gets all of it');
  });
}

t.test('deliveries after a rotation are signed by the new secret as well', async (t) => {
  const { test, receiver, ids } = await changing(t, async ({ test, webhook, receiver }) => {
    const secret = formatSecret(randomBytes(32));
    const stored = encryptSecret(test.pipeline.webhooks.keys, secret, webhook.id);
    await rotateWebhookSecret(test.pool, webhook, webhook.id, stored, DAY_MS);
    receiver.trust(secret);
    receiver.distrust(webhook.secret);
  });
  await letPass(test, 2 * MINUTE_MS);
  await drain(test.pipeline);
  t.same([...new Set(submissionsIn(receiver.received))], ids.sort());
});

for (const [what, change] of [
  ['deleted', ({ test, webhook }: Scene) => deleteWebhook(test.pool, webhook, webhook.id)],
  ['disabled', (scene: Scene) => set(scene, { status: WebhookStatus.DISABLED })],
] as const) {
  t.test(`a ${what} subscription is sent nothing more, claimed deliveries included`, async (t) => {
    const { test, receiver } = await changing(t, change);
    await letPass(test, 2 * MINUTE_MS);
    await drain(test.pipeline);
    t.equal(receiver.received.length, FIRST);
  });
}

t.test('410 stops deliveries, and waiting ones continue after reactivation', async (t) => {
  const scene = await changing(t, async () => {}, answering(410));
  const { test, receiver, webhook, ids } = scene;
  t.equal(receiver.received.length, FIRST);
  t.match(await webhookOf(test, webhook), { status: WebhookStatus.DISABLED, disabledReason: /410/ });
  receiver.behave(answering(204));
  await set(scene, { status: WebhookStatus.ACTIVE });
  await letPass(test, 2 * MINUTE_MS);
  await drain(test.pipeline);
  t.same(submissionsIn(receiver.received.slice(FIRST)), ids.sort());
});

t.test('a loop that a change has ended leaves the lease of the next one alone', async (t) => {
  const test = await openPipeline(t, [witness]);
  const [receiver, next] = [await startReceiver(t), await startReceiver(t)];
  const webhook = await subscribe(test, receiver);
  const letGo = [receiver, next].map((one) => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    one.behave((response) => void held.then(() => response.writeHead(204).end()));
    return release;
  });
  const ids = await submitFor(test, webhook.projectId, 30);
  const scene: Scene = { test, receiver, webhook, ids };
  await notifyAll(test);
  const first = runJob(test.pipeline, webhookJob(webhook.id));
  await until('the endpoint has the first events', () => receiver.received.length === FIRST);
  await set(scene, { url: next.url });
  next.trust(webhook.secret);
  const second = runJob(test.pipeline, webhookJob(webhook.id));
  await until('the new one has events', () => next.received.length > 0);
  letGo[0]?.();
  await first;
  const { active } = test.pipeline.webhooks;
  t.ok(active.has(webhook.id), 'it is renewed still');
  letGo[1]?.();
  await second;
  t.notOk(active.has(webhook.id));
});
