/** Endpoints that misbehave, each beside another project's that does not. */
import { readFile } from 'node:fs/promises';
import t, { type Test } from 'tap';
import { DeliveryStatus } from '../../../../gen/attestation/v1/webhooks_pb.js';
import { webhookJob } from '../../../../src/server/jobs/job.js';
import { guardedConnector } from '../../../../src/server/net/destination.js';
import { runJob } from '../../../../src/server/pipeline/stages.js';
import { openWebhookSender } from '../../../../src/server/webhooks/delivery/send.js';
import { makeServerTls } from '../../../support/certificates/server-tls.js';
import { makeWitness, openPipeline, type TestPipeline } from '../../../support/pipeline.js';
import { until } from '../../../support/until.js';
import { answering, type Behaviour, startReceiver } from '../../../support/webhooks/receiver.js';
import {
  notifyAll,
  statusesOf,
  submitFor,
  subscribe,
  type TestWebhook,
} from '../../../support/webhooks/webhooks.js';

const { PENDING, DELIVERED } = DeliveryStatus;
const { tls, caFile } = await makeServerTls(t);
const ca = await readFile(caFile, 'utf8');
const witness = await makeWitness(t, 'w');

/** A pipeline that trusts the test's CA. */
async function open(t: Test): Promise<TestPipeline> {
  const test = await openPipeline(t, [witness]);
  const connect = guardedConnector({ allowInsecure: true, ca });
  const { aborting } = test.pipeline.webhooks;
  const { send, close } = openWebhookSender({ clock: Date.now, aborting, connect });
  t.teardown(close);
  return { ...test, pipeline: test.another({ webhooks: { ...test.pipeline.webhooks, send } }) };
}

/** A byte of an answer's head every now and then, until the connection ends. */
const trickling: Behaviour = ({ socket }) => {
  const text = `HTTP/1.1 200 OK\r\nx-long: ${'x'.repeat(10_000)}`;
  let sent = 0;
  const timer = setInterval(() => socket?.write(text.charAt(sent++)), 10);
  socket?.on('error', () => {}).on('close', () => clearInterval(timer));
};

/** A failure whose answer does not end. */
const endless: Behaviour = (response) => {
  response.writeHead(500);
  const more = () => {
    while (response.write('x'.repeat(10_000)));
    response.once('drain', more);
  };
  more();
};

t.test('endpoints that never respond delay no other project', async (t) => {
  const test = await open(t);
  const dead = await startReceiver(t, { tls });
  const good = await startReceiver(t, { tls });
  dead.behave(() => {});
  const first = await subscribe(test, dead);
  const hanging = [first];
  for (let i = 0; i < 9; i++) hanging.push(await subscribe(test, dead, { projectId: first.projectId }));
  const other = await subscribe(test, good);
  const neighbour = await subscribe(test, good, { projectId: first.projectId });
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

t.test('requests that hang at an origin do not hold up those of another project to it', async (t) => {
  const test = await open(t);
  const shared = await startReceiver(t, { tls });
  shared.behave((response, { path }) => {
    if (path.endsWith('?good')) response.writeHead(204).end();
  });
  const first = await subscribe(test, shared);
  const hanging = [first];
  for (let i = 0; i < 19; i++) hanging.push(await subscribe(test, shared, { projectId: first.projectId }));
  const other = await subscribe(test, { ...shared, url: `${shared.url}?good` });
  await submitFor(test, first.projectId, 10);
  await submitFor(test, other.projectId, 10);
  await notifyAll(test);
  const stuck = hanging.map(({ id }) => runJob(test.pipeline, webhookJob(id)));
  await until('requests hang', () => shared.open.now > 64);
  await runJob(test.pipeline, webhookJob(other.id));
  t.same(new Set(await statusesOf(test, other)), new Set([DELIVERED]));
  t.ok(shared.open.now > 64, 'they still hang');
  await shared.close();
  await Promise.all(stuck);
});

t.test("while an endpoint answers byte by byte, all of another project's deliveries succeed", async (t) => {
  const test = await open(t);
  const [bad, good] = [await startReceiver(t, { tls }), await startReceiver(t, { tls })];
  bad.behave(trickling);
  const [slow, other] = [await subscribe(test, bad), await subscribe(test, good)];
  await submitFor(test, slow.projectId, 50);
  await submitFor(test, other.projectId, 100);
  await notifyAll(test);
  const stuck = runJob(test.pipeline, webhookJob(slow.id));
  await until('it is called', () => bad.open.now > 0);
  await runJob(test.pipeline, webhookJob(other.id));
  t.same(new Set(await statusesOf(test, other)), new Set([DELIVERED]));
  t.equal(good.received.length, 100);
  t.same(new Set(await statusesOf(test, slow)), new Set([PENDING]));
  t.ok(bad.open.now > 0, 'its attempts are still under way');
  await bad.close();
  await stuck;
});

t.test(
  'endpoints that are gone, redirect, or answer without end fail beside one that gets everything',
  async (t) => {
    const test = await open(t);
    const [gone, redirecting, huge] = [
      await startReceiver(t, { tls }),
      await startReceiver(t, { tls }),
      await startReceiver(t, { tls }),
    ];
    const [good, elsewhere] = [await startReceiver(t, { tls }), await startReceiver(t, { tls })];
    redirecting.behave(answering(307, '', { location: elsewhere.url }));
    huge.behave(endless);
    await gone.close();
    const failing: TestWebhook[] = [];
    for (const receiver of [gone, redirecting, huge]) {
      const webhook = await subscribe(test, receiver);
      await submitFor(test, webhook.projectId, 10);
      failing.push(webhook);
    }
    const other = await subscribe(test, good);
    await submitFor(test, other.projectId, 100);
    await notifyAll(test);
    await Promise.all([...failing, other].map(({ id }) => runJob(test.pipeline, webhookJob(id))));
    t.same(new Set(await statusesOf(test, other)), new Set([DELIVERED]));
    t.equal(good.received.length, 100);
    for (const webhook of failing) t.same(new Set(await statusesOf(test, webhook)), new Set([PENDING]));
    t.same(elsewhere.received, [], 'a redirect is not followed');
    const answers = await test.pool<
      { answer: string }[]
    >`SELECT answer FROM webhook_attempt WHERE status_code = 500`;
    t.ok(answers.length >= 10);
    t.ok(answers.every(({ answer }) => answer === 'x'.repeat(2_048)));
    await until('no answer is read on', () => huge.open.now === 0);
  },
);
