/** Asking witnesses: when, how often, by whom, and what becomes of what they say. */
import t from 'tap';
import { BatchStatus } from '../../../gen/attestation/v1/batches_pb.js';
import { sealJob, settleJob, witnessJob } from '../../../src/server/jobs/job.js';
import { runJob } from '../../../src/server/pipeline/stages.js';
import { backoffMs } from '../../../src/server/witnessing/backoff.js';
import { setUpWitnesses } from '../../../src/server/witnessing/set-up-witnesses.js';
import { letPass } from '../../support/breaking/database-clock.js';
import { nextAttemptMs, statuses } from '../../support/judging/batch-states.js';
import { assertConsistent } from '../../support/judging/consistent.js';
import { drain, makeWitness, openPipeline, unwilling, willing } from '../../support/pipeline.js';
import { until } from '../../support/until.js';

const MINUTE_MS = 60_000;
const { SEALED, WITNESSED } = BatchStatus;

t.test('a warning is logged while a witness has not answered for 5 s', async (t) => {
  const witness = await makeWitness(t, 'silent');
  let answer = () => {};
  witness.manner = (willingly) =>
    new Promise((resolve) => {
      answer = () => resolve(willingly());
    });
  const test = await openPipeline(t, [witness]);
  test.pipeline.settings.witnessTimeoutMs = 120_000;
  await test.submit(1);
  await runJob(test.pipeline, sealJob(test.logId));
  const asking = runJob(test.pipeline, witnessJob(test.logId, 'silent'));
  const said = await until('the log says so', () =>
    test.lines.find(({ msg }) => msg === 'the witness has not answered for 5 s'),
  );
  t.match(said, {
    level: 'warn',
    witness: 'silent',
    origin: 'live.log.example.com',
    treeSize: 1,
    attempt: 1,
  });
  answer();
  await asking;
  await drain(test.pipeline);
  t.same(await statuses(test), [WITNESSED]);
});

t.test('one request covers every batch sealed while the witness was unavailable', async (t) => {
  const witness = await makeWitness(t, 'away');
  witness.manner = unwilling;
  const test = await openPipeline(t, [witness]);
  const acknowledged = [];
  for (let batch = 0; batch < 5; batch++) {
    acknowledged.push(...(await test.submit(2)));
    await drain(test.pipeline);
  }
  t.same(await statuses(test), [SEALED, SEALED, SEALED, SEALED, SEALED]);
  t.equal(witness.asked, 1, 'it is left alone for a while after it failed');
  witness.manner = willing;
  await letPass(test, MINUTE_MS);
  await drain(test.pipeline);
  t.equal(witness.asked, 2);
  t.same(await statuses(test), [WITNESSED, WITNESSED, WITNESSED, WITNESSED, WITNESSED]);
  await assertConsistent(t, { ...test, acknowledged });
});

t.test('a failed request is retried after 1 s, doubling to 30 s, hourly after the deadline', async (t) => {
  const witness = await makeWitness(t, 'failing');
  witness.manner = unwilling;
  const test = await openPipeline(t, [witness], { deadlineMs: 60 * MINUTE_MS });
  await test.submit(1);
  await runJob(test.pipeline, sealJob(test.logId));
  const waits: number[] = [];
  for (let attempt = 0; attempt < 13; attempt++) {
    await runJob(test.pipeline, witnessJob(test.logId, 'failing'));
    waits.push(await nextAttemptMs(test, 'failing'));
    await test.pool`UPDATE witness_state SET next_attempt_at = clock_timestamp()`;
  }
  t.equal(witness.asked, 13);
  for (const [attempt, waitMs] of waits.entries()) {
    const longest = Math.min(1_000 * 2 ** attempt, 30_000);
    t.ok(waitMs <= longest && waitMs > longest * 0.8 - 1_000, `${attempt}: ${waitMs} ms`);
  }
  await test.pool`UPDATE batch SET deadline_at = sealed_at`;
  await runJob(test.pipeline, witnessJob(test.logId, 'failing'));
  t.ok((await nextAttemptMs(test, 'failing')) > 47 * MINUTE_MS);
  await t.test('and within 30 s once there is something new to vouch for', async (t) => {
    await test.submit(1);
    await runJob(test.pipeline, sealJob(test.logId));
    t.ok((await nextAttemptMs(test, 'failing')) <= 30_000);
  });
});

t.test('whether a deadline has passed is decided by the clock that set it', async (t) => {
  const witness = await makeWitness(t, 'failing');
  witness.manner = unwilling;
  const test = await openPipeline(t, [witness], { deadlineMs: 60 * MINUTE_MS });
  await test.submit(1);
  await runJob(test.pipeline, sealJob(test.logId));
  await letPass(test, 61 * MINUTE_MS);
  await runJob(test.pipeline, witnessJob(test.logId, 'failing'));
  t.ok(
    (await nextAttemptMs(test, 'failing')) > 47 * MINUTE_MS,
    'the database is an hour ahead of the worker',
  );
});

t.test('the wait after a failure is as documented at its ends', async (t) => {
  t.equal(backoffMs(0, false, 0), 1_000);
  t.equal(backoffMs(0, false, 1), 800);
  t.equal(backoffMs(1_000_000, false, 0), 30_000);
  t.equal(backoffMs(0, true, 0), 60 * MINUTE_MS);
});

t.test('a witness with a cadence is not hastened by new batches', async (t) => {
  const hourly = await makeWitness(t, 'hourly', { everyMs: 60 * MINUTE_MS });
  const test = await openPipeline(t, [hourly]);
  await test.submit(1);
  await drain(test.pipeline);
  await test.submit(1);
  await drain(test.pipeline);
  t.equal(hourly.asked, 1);
  t.same(await statuses(test), [WITNESSED, SEALED]);
  await letPass(test, 61 * MINUTE_MS);
  await drain(test.pipeline);
  t.equal(hourly.asked, 2);
  t.same(await statuses(test), [WITNESSED, WITNESSED]);
});

t.test('a lease excludes other workers from a witness until it expires', async (t) => {
  const witness = await makeWitness(t, 'slow');
  const answers: (() => void)[] = [];
  witness.manner = async (answer) => {
    await new Promise<void>((resolve) => answers.push(resolve));
    return answer();
  };
  const test = await openPipeline(t, [witness]);
  const acknowledged = await test.submit(2);
  await runJob(test.pipeline, sealJob(test.logId));
  const job = witnessJob(test.logId, 'slow');
  const died = runJob(test.pipeline, job);
  while (witness.asked === 0) await runJob(test.another(), settleJob(test.logId));
  await runJob(test.another(), job);
  t.equal(witness.asked, 1);
  await letPass(test, MINUTE_MS);
  witness.manner = willing;
  await runJob(test.another(), job);
  t.equal(witness.asked, 2);
  t.same(await test.pool`SELECT failures, attempt, leased_until FROM witness_state WHERE log_id = 1`, [
    { failures: 0, attempt: 2, leased_until: null },
  ]);
  await t.test('and a late result of the first one does no harm', async (t) => {
    for (const answer of answers) answer();
    await died;
    const [row] = await test.pool`SELECT count(*) AS n FROM evidence`;
    t.equal(row?.n, 1);
  });
  await drain(test.pipeline);
  t.same(await statuses(test), [WITNESSED]);
  await assertConsistent(t, { ...test, acknowledged });
});

t.test('evidence after the end of its lease is stored, a failure after it is not', async (t) => {
  const witness = await makeWitness(t, 'slow');
  let end: (how: 'answer' | 'fail') => void = () => {};
  witness.manner = async (answer) => {
    const how = await new Promise((resolve) => {
      end = resolve;
    });
    if (how === 'fail') throw new Error('too late');
    return answer();
  };
  const test = await openPipeline(t, [witness]);
  const acknowledged = await test.submit(2);
  await runJob(test.pipeline, sealJob(test.logId));
  for (const how of ['fail', 'answer'] as const) {
    const asking = runJob(test.pipeline, witnessJob(test.logId, 'slow'));
    const asked = witness.asked;
    while (witness.asked === asked) await runJob(test.another(), settleJob(test.logId));
    // Another worker has begun meanwhile.
    await test.pool`
      UPDATE witness_state SET attempt = attempt + 1, leased_until = clock_timestamp() - interval '1 second'`;
    end(how);
    await asking;
    const [state] = await test.pool`SELECT failures, covers_tree_size FROM witness_state WHERE log_id = 1`;
    t.same(state, { failures: 0, covers_tree_size: how === 'answer' ? 2 : 0 });
  }
  await drain(test.pipeline);
  t.same(await statuses(test), [WITNESSED]);
  await assertConsistent(t, { ...test, acknowledged });
});

t.test(
  'a witness that never answers is given up after its time, and the others are not held up',
  async (t) => {
    const silent = await makeWitness(t, 'silent', { required: false });
    let aborted = false;
    silent.manner = (_answer, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          aborted = true;
          reject(signal.reason);
        });
      });
    const good = await makeWitness(t, 'good');
    const test = await openPipeline(t, [silent, good]);
    test.pipeline.settings.witnessTimeoutMs = 200;
    const acknowledged = await test.submit(2);
    await drain(test.pipeline);
    t.ok(aborted);
    t.same(await statuses(test), [WITNESSED]);
    const [state] =
      await test.pool`SELECT last_error FROM witness_state WHERE witness = 'silent' AND log_id = 1`;
    t.match(state, { last_error: /no answer within 200 ms/ });
    await assertConsistent(t, { ...test, acknowledged });
  },
);

t.test('evidence of a worker that lacks the authority’s new chain is trusted', async (t) => {
  const old = await makeWitness(t, 'tsa');
  const renewed = await makeWitness(t, 'tsa');
  const test = await openPipeline(t, [old]);
  const acknowledged = await test.submit(1);
  await runJob(test.pipeline, sealJob(test.logId));
  await setUpWitnesses(test.pool, [renewed.setup], { quorums: [], deadlineMs: 60 * MINUTE_MS });
  await test.pool`
      UPDATE timestamp_authority SET valid_from = valid_from - interval '1 minute', valid_to = valid_to - interval '1 minute'`;
  await drain(test.pipeline);
  t.equal(old.asked, 1);
  t.same(await statuses(test), [WITNESSED]);
  await assertConsistent(t, { ...test, acknowledged });
});

t.test('a stamp that does not verify is no evidence', async (t) => {
  const lying = await makeWitness(t, 'lying');
  lying.manner = async (answer) => {
    const stamp = Buffer.from(await answer());
    stamp.writeUInt8(stamp.readUInt8(stamp.length - 5) ^ 1, stamp.length - 5);
    return stamp;
  };
  const test = await openPipeline(t, [lying]);
  const acknowledged = await test.submit(2);
  await drain(test.pipeline);
  t.same(await statuses(test), [SEALED]);
  t.equal((await test.pool`SELECT FROM evidence`).length, 0);
  await assertConsistent(t, { ...test, acknowledged });
});
