/** Witnesses after an outage: theirs or our own. */
import t from 'tap';
import { BatchStatus } from '../../../gen/attestation/v1/batches_pb.js';
import { sealJob, witnessJob } from '../../../src/server/jobs/job.js';
import { runJob } from '../../../src/server/pipeline/stages.js';
import { letPass } from '../../support/breaking/database-clock.js';
import { history, nextAttemptMs, statuses } from '../../support/judging/batch-states.js';
import {
  drain,
  makeWitness,
  openPipeline,
  type TestPipeline,
  unwilling,
  willing,
} from '../../support/pipeline.js';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const { FAILED } = BatchStatus;

/** Lets time pass until the witness is due, and asks it. @returns how long that was */
async function askWhenDue(test: TestPipeline, name: string): Promise<number> {
  const waitMs = await nextAttemptMs(test, name);
  if (waitMs > 0) await letPass(test, waitMs + 1);
  await runJob(test.pipeline, witnessJob(test.logId, name));
  return waitMs;
}

t.test('a short deadline is kept, however long the witness has been unavailable before', async (t) => {
  const witness = await makeWitness(t, 'away');
  witness.manner = unwilling;
  const test = await openPipeline(t, [witness], { deadlineMs: 2 * MINUTE_MS });
  await test.submit(1);
  await drain(test.pipeline);
  for (let attempt = 0; attempt < 12; attempt++) await askWhenDue(test, 'away');
  await letPass(test, 10 * MINUTE_MS);
  await drain(test.pipeline);
  t.same(await statuses(test), [FAILED]);
  await test.submit(1);
  await drain(test.pipeline);
  await letPass(test, 2 * MINUTE_MS + 1);
  await drain(test.pipeline);
  t.same(await statuses(test), [FAILED, FAILED]);
  const [late] = await test.pool`
    SELECT max(extract(epoch FROM t.at - b.deadline_at))::float8 AS seconds
    FROM batch_transition t JOIN batch b USING (log_id, tree_size) WHERE b.tree_size = 2`;
  t.ok(late?.seconds < 5, `settled ${late?.seconds} s after its deadline`);
  t.same(await history(test), ['1:4', '2:4']);
});

t.test('an attempt falls on the deadline of the newest batch', async (t) => {
  const witness = await makeWitness(t, 'away');
  witness.manner = unwilling;
  const test = await openPipeline(t, [witness], { deadlineMs: 2 * MINUTE_MS });
  await test.submit(1);
  await runJob(test.pipeline, sealJob(test.logId));
  const secondsAfter = async (): Promise<number> => {
    const [state] = await test.pool`
      SELECT extract(epoch FROM w.last_failed_at - b.deadline_at)::float8 AS after FROM witness_state w
      JOIN batch b USING (log_id) WHERE w.log_id = ${test.logId}`;
    return state?.after ?? Number.NEGATIVE_INFINITY;
  };
  let after = Number.NEGATIVE_INFINITY;
  for (let attempt = 0; after < 0 && attempt < 50; attempt++) {
    await askWhenDue(test, 'away');
    after = await secondsAfter();
  }
  t.ok(after >= 0 && after < 5, `${after} s after the deadline`);
  t.ok((await nextAttemptMs(test, 'away')) > 40 * MINUTE_MS, 'there is no hurry any more');
});

t.test('a batch published during the request for an older one is witnessed too', async (t) => {
  const witness = await makeWitness(t, 'slow');
  const test = await openPipeline(t, [witness], { deadlineMs: 2 * MINUTE_MS });
  await test.submit(1);
  await runJob(test.pipeline, sealJob(test.logId));
  await letPass(test, 10 * MINUTE_MS);
  witness.manner = async () => {
    await test.submit(1);
    await runJob(test.another(), sealJob(test.logId));
    throw new Error('the witness is away');
  };
  await runJob(test.pipeline, witnessJob(test.logId, 'slow'));
  t.ok((await nextAttemptMs(test, 'slow')) <= 30 * SECOND_MS);
});

t.test('one good answer ends the backoff of all witnesses of its kind, about every log', async (t) => {
  const first = await makeWitness(t, 'first');
  const second = await makeWitness(t, 'second');
  for (const witness of [first, second]) {
    witness.manner = unwilling;
    witness.setup.environments = [1, 2];
  }
  const test = await openPipeline(t, [first, second]);
  await test.submit(1);
  await drain(test.pipeline);
  await test.pool`
    UPDATE witness_state SET failures = 9, next_attempt_at = clock_timestamp() + interval '10 minutes'`;
  await test.pool`UPDATE witness_state SET next_attempt_at = clock_timestamp() WHERE witness = 'first' AND log_id = 1`;
  first.manner = willing;
  second.manner = willing;
  await runJob(test.pipeline, witnessJob(test.logId, 'first'));
  const rows = await test.pool`
    SELECT log_id, witness, next_attempt_at <= clock_timestamp() AS due FROM witness_state ORDER BY witness, log_id`;
  t.same(
    rows.map(({ log_id, witness, due }) => `${witness} ${log_id} ${due}`),
    ['first 1 true', 'first 2 true', 'second 1 true', 'second 2 true'],
  );
  const asked = first.asked;
  await test.submit(1);
  await drain(test.pipeline);
  t.equal(second.asked, 2, 'at once');
  await test.pool`UPDATE witness_state SET failures = 9, next_attempt_at = clock_timestamp() + interval '10 minutes'
                  WHERE witness = 'second'`;
  await test.submit(1);
  await drain(test.pipeline);
  t.equal(first.asked, asked + 2);
  t.equal(second.asked, 2, 'but an answer like the one before says nothing of the others');
});
