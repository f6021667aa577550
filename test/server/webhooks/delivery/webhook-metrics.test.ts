/** What an operator sees of webhooks on /metrics. */
import t from 'tap';
import { addPipelineGauges, attemptCounters } from '../../../../src/server/ops/gauges.js';
import { createMetrics } from '../../../../src/server/ops/metrics.js';
import { letPass } from '../../../support/breaking/database-clock.js';
import { drain, makeWitness, openPipeline } from '../../../support/pipeline.js';
import { answering, startReceiver } from '../../../support/webhooks/receiver.js';
import { notifyAll, submitAndDrain, submitFor, subscribe } from '../../../support/webhooks/webhooks.js';

t.test('metrics count waiting deliveries, attempts by outcome, and disabled subscriptions', async (t) => {
  const metrics = createMetrics();
  const observeAttempts = attemptCounters(metrics);
  const test = await openPipeline(t, [await makeWitness(t, 'w')], { observeAttempts });
  addPipelineGauges(metrics, test.pool);
  const read = async (name: string) => {
    const { text } = await metrics.read();
    const line = text.split('\n').find((one) => one.startsWith(`${name} `));
    return Number(line?.slice(name.length));
  };
  const receiver = await startReceiver(t);
  receiver.behave(answering(500));
  const webhook = await subscribe(test, receiver);
  t.same(
    [await read('attest_webhook_deliveries_due'), await read('attest_webhook_oldest_due_seconds')],
    [0, 0],
  );
  await submitFor(test, webhook.projectId, 3);
  await submitFor(test, (await subscribe(test, receiver)).projectId, 2);
  await notifyAll(test);
  await letPass(test, 60_000);
  t.equal(await read('attest_webhook_deliveries_due'), 5, 'events without rows are due');
  t.ok((await read('attest_webhook_oldest_due_seconds')) >= 60);
  await drain(test.pipeline);
  t.equal(await read('attest_webhook_deliveries_due'), 0, 'they wait for their next attempt');
  t.equal(await read('attest_webhook_attempts_total{outcome="failed"}'), 5);
  await letPass(test, 10_000);
  t.equal(await read('attest_webhook_deliveries_due'), 5);
  const seconds = await read('attest_webhook_oldest_due_seconds');
  t.ok(seconds >= 4 && seconds < 60, `${seconds} s`);
  receiver.behave(answering(204));
  await drain(test.pipeline);
  t.equal(await read('attest_webhook_attempts_total{outcome="delivered"}'), 5);
  t.equal(await read('attest_webhooks_disabled_total'), 0);
  receiver.behave(answering(410));
  await submitAndDrain(test, webhook.projectId, 1);
  t.equal(await read('attest_webhooks_disabled_total'), 1);
  t.equal(await read('attest_webhook_deliveries_due'), 0);
});
