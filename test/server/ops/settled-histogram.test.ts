/** The time to witnessed, as operators see it. */
import t from 'tap';
import { createMetrics } from '../../../src/server/ops/metrics.js';
import { settledHistogram } from '../../../src/server/ops/settled-histogram.js';
import { letPass } from '../../support/breaking/database-clock.js';
import { drain, makeWitness, openPipeline, unwilling, willing } from '../../support/pipeline.js';

const MINUTE_MS = 60_000;

t.test('a batch counts once, by its first outcome and the age of its first submission', async (t) => {
  const witness = await makeWitness(t, 'w');
  const metrics = createMetrics();
  const test = await openPipeline(t, [witness], { deadlineMs: 5 * MINUTE_MS });
  const pipeline = test.another({ observeSettled: settledHistogram(metrics) });
  const counted = async (outcome: string, le: string) => {
    const { text } = await metrics.read();
    const series = `attest_batch_settled_seconds_bucket{le="${le}",log="live.log.example.com",outcome="${outcome}"}`;
    const line = text.split('\n').find((one) => one.startsWith(series));
    return line === undefined ? undefined : Number(line.slice(series.length));
  };
  await test.submit(2);
  await letPass(test, MINUTE_MS);
  await test.submit(1);
  t.equal(await counted('witnessed', '+Inf'), undefined, 'nothing is settled');
  await drain(pipeline);
  t.same([await counted('witnessed', '30'), await counted('witnessed', '120')], [0, 1], 'since the first');

  witness.manner = unwilling;
  await test.submit(3);
  await drain(pipeline);
  await letPass(test, 10 * MINUTE_MS);
  await drain(pipeline);
  t.same([await counted('failed', '300'), await counted('failed', '1800')], [0, 1]);
  witness.manner = willing;
  await letPass(test, 60 * MINUTE_MS);
  await drain(pipeline);
  t.same(
    [await counted('failed', '+Inf'), await counted('witnessed', '+Inf')],
    [1, 1],
    'late evidence counts nothing',
  );
});
