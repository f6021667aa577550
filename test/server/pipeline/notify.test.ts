/** From a settled batch to events: who is told, once, of what. */
import t from 'tap';
import { BatchStatus } from '../../../gen/attestation/v1/batches_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { EventType, WebhookStatus } from '../../../gen/attestation/v1/webhooks_pb.js';
import { notifyJob, sealJob, settleJob, witnessJob } from '../../../src/server/jobs/job.js';
import { findDueJobs } from '../../../src/server/pipeline/reconcile.js';
import { runJob } from '../../../src/server/pipeline/stages.js';
import { makeProject } from '../../../src/server/process/first-keys.js';
import { updateWebhook } from '../../../src/server/webhooks/store/webhooks.js';
import { letPass } from '../../support/breaking/database-clock.js';
import {
  drain,
  makeWitness,
  openPipeline,
  type TestPipeline,
  unwilling,
  willing,
} from '../../support/pipeline.js';
import { startReceiver } from '../../support/webhooks/receiver.js';
import {
  deliveriesOf,
  NOBODY,
  submissionsIn,
  submitAndDrain,
  submitFor,
  subscribe,
} from '../../support/webhooks/webhooks.js';

const MINUTE_MS = 60_000;
const { ATTESTATION_WITNESSED, ATTESTATION_PARTIAL, ATTESTATION_FAILED } = EventType;
const ALL = [ATTESTATION_WITNESSED, ATTESTATION_PARTIAL, ATTESTATION_FAILED];

/** Seals, witnesses and settles, and nothing further. */
async function settleOnly({ pipeline, logId }: TestPipeline, witness: string): Promise<void> {
  for (const job of [sealJob(logId), witnessJob(logId, witness), settleJob(logId)])
    await runJob(pipeline, job);
}

async function countRows({ pool }: TestPipeline) {
  const [row] = await pool<{ ranges: number; deliveries: number; left: number }[]>`
    SELECT (SELECT count(*) FROM webhook_range) AS ranges, (SELECT count(*) FROM webhook_delivery) AS deliveries,
           (SELECT count(*) FROM batch_transition WHERE NOT notified) AS left`;
  return row;
}

t.test(
  'a webhook gets the events of every submission of its project and environment, and of no other',
  async (t) => {
    const witness = await makeWitness(t, 'w');
    const test = await openPipeline(t, [witness]);
    const [one, two, other] = [await startReceiver(t), await startReceiver(t), await startReceiver(t)];
    const mine = await subscribe(test, one);
    await subscribe(test, two, { projectId: mine.projectId });
    const foreign = await subscribe(test, other);
    const inTest = await startReceiver(t);
    await subscribe(test, inTest, { projectId: mine.projectId, environment: Environment.TEST });
    const stranger = await makeProject(test.pool, 'a stranger');
    const expected: string[] = [];
    const notMine: string[] = [];
    for (let batch = 0; batch < 3; batch++) {
      for (let i = 0; i < 3; i++) {
        expected.push(...(await submitFor(test, mine.projectId, 4)));
        notMine.push(...(await submitFor(test, foreign.projectId, 2)));
        await submitFor(test, stranger, 1);
      }
      await drain(test.pipeline);
    }
    t.same(submissionsIn(one.received), expected.sort());
    t.same(submissionsIn(two.received), expected);
    t.same(submissionsIn(other.received), notMine.sort());
    t.same(inTest.received, []);
    const idsOf = (receiver: typeof one) => receiver.received.map(({ event }) => event.id).sort();
    t.same(idsOf(one), idsOf(two), 'an event has one id for every subscription');
    t.equal(new Set([...idsOf(one), ...idsOf(other)]).size, expected.length + notMine.length);
    t.same(await countRows(test), { ranges: 0, deliveries: 2 * expected.length + notMine.length, left: 0 });
  },
);

t.test(
  'a full batch costs a few rows until its events are sent, and making them twice makes no more',
  async (t) => {
    const test = await openPipeline(t, [await makeWitness(t, 'w')]);
    const { projectId } = await subscribe(test, NOBODY);
    for (let i = 0; i < 2; i++) await subscribe(test, NOBODY, { projectId });
    await submitFor(test, projectId, 2_000);
    await settleOnly(test, 'w');
    t.same(await countRows(test), { ranges: 0, deliveries: 0, left: 1 });
    const [{ id } = { id: '' }] = await test.pool<{ id: string }[]>`SELECT id FROM batch`;
    t.match(await findDueJobs(test.pipeline), [notifyJob(id)], 'the reconciler finds it');
    await Promise.all([1, 2, 3, 4].map(() => runJob(test.pipeline, notifyJob(id))));
    await runJob(test.pipeline, notifyJob(id));
    t.same(await countRows(test), { ranges: 3, deliveries: 0, left: 0 });
  },
);

t.test('webhooks that were created later, of other events or disabled get no event', async (t) => {
  const test = await openPipeline(t, [await makeWitness(t, 'w')]);
  const receiver = await startReceiver(t);
  const { projectId, id } = await subscribe(test, receiver);
  await subscribe(test, receiver, { projectId, events: [ATTESTATION_PARTIAL, ATTESTATION_FAILED] });
  const owner = { projectId, environment: Environment.LIVE };
  const set = (status: number) =>
    updateWebhook(test.pool, owner, id, {
      url: undefined,
      events: undefined,
      status,
      disabledReason: 'a test',
    });
  await set(WebhookStatus.DISABLED);
  await submitAndDrain(test, projectId, 2);
  await submitFor(test, projectId, 2);
  await settleOnly(test, 'w');
  await set(WebhookStatus.ACTIVE);
  await subscribe(test, receiver, { projectId });
  await drain(test.pipeline);
  t.same(receiver.received, [], 'the batch settled before they were active');
  const expected = await submitAndDrain(test, projectId, 2);
  t.same(submissionsIn(receiver.received), [...expected, ...expected].sort());
});

t.test('failed, partial and witnessed are separate events with data of their own', async (t) => {
  const [good, late] = [await makeWitness(t, 'good'), await makeWitness(t, 'late')];
  good.manner = unwilling;
  late.manner = unwilling;
  const test = await openPipeline(t, [good, late], { deadlineMs: MINUTE_MS });
  const receiver = await startReceiver(t);
  const webhook = await subscribe(test, receiver, { events: ALL });
  const [failed = ''] = await submitAndDrain(test, webhook.projectId, 1);
  await letPass(test, 2 * MINUTE_MS);
  await drain(test.pipeline);
  good.manner = willing;
  const [partial = ''] = await submitFor(test, webhook.projectId, 1);
  for (let i = 0; i < 2; i++) {
    await letPass(test, 60 * MINUTE_MS);
    await drain(test.pipeline);
  }
  late.manner = willing;
  await letPass(test, 60 * MINUTE_MS);
  await drain(test.pipeline);
  const bundle = (id: string) => `https://api.example.com/v1/attestations/${id}/bundle`;
  const told = receiver.received.map(({ event: { type, data } }) => ({ type, data }));
  const byText = (a: unknown, b: unknown) => JSON.stringify(a).localeCompare(JSON.stringify(b));
  t.same(
    told.sort(byText),
    [
      {
        type: 'attestation.failed',
        data: {
          submission_id: failed,
          reason: 'no required witness vouched for the batch before its deadline',
          missing: ['good', 'late'],
        },
      },
      {
        type: 'attestation.partial',
        data: { submission_id: partial, bundle_url: bundle(partial), landed: ['good'], missing: ['late'] },
      },
      { type: 'attestation.witnessed', data: { submission_id: failed, bundle_url: bundle(failed) } },
      { type: 'attestation.witnessed', data: { submission_id: partial, bundle_url: bundle(partial) } },
    ].sort(byText),
  );
  t.equal(new Set(receiver.received.map(({ event }) => event.id)).size, 4);
  for (const { event, headers } of receiver.received) {
    t.match(event.id, /^evt_[0-9A-HJKMNP-TV-Z]{26}$/);
    t.match(event.created, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    t.match(headers, { 'content-type': 'application/json', 'webhook-id': event.id });
  }
  const transitions = (await deliveriesOf(test, webhook)).map(({ transition }) => transition).sort();
  t.same(transitions, [
    BatchStatus.WITNESSED,
    BatchStatus.WITNESSED,
    BatchStatus.PARTIAL,
    BatchStatus.FAILED,
  ]);
});

t.test('a transition recorded by a process of the previous version has events as well', async (t) => {
  const test = await openPipeline(t, [await makeWitness(t, 'w')]);
  const receiver = await startReceiver(t);
  const { projectId } = await subscribe(test, receiver, { events: ALL });
  await submitFor(test, projectId, 1);
  await runJob(test.pipeline, sealJob(test.logId));
  await test.pool`UPDATE batch SET status = ${BatchStatus.PARTIAL}`;
  await test.pool`
    INSERT INTO batch_transition (log_id, tree_size, status) SELECT log_id, tree_size, status FROM batch`;
  for (const job of await findDueJobs(test.pipeline))
    if (job.stage.case === 'notify') await runJob(test.pipeline, job);
  for (const job of await findDueJobs(test.pipeline))
    if (job.stage.case === 'webhook') await runJob(test.pipeline, job);
  t.match(receiver.received, [{ event: { type: 'attestation.partial', data: { landed: [], missing: [] } } }]);
});
