/** Settling: what evidence covers, what deadlines do, and that each transition happens once. */
import t, { type Test } from 'tap';
import { BatchStatus } from '../../../gen/attestation/v1/batches_pb.js';
import { sealJob, settleJob, witnessJob } from '../../../src/server/jobs/job.js';
import { endLog, ensureLog, freezeLog, getLog } from '../../../src/server/log/store/logs.js';
import { runJob } from '../../../src/server/pipeline/stages.js';
import { setUpWitnesses } from '../../../src/server/witnessing/set-up-witnesses.js';
import { letPass } from '../../support/breaking/database-clock.js';
import { history, statuses } from '../../support/judging/batch-states.js';
import { assertConsistent } from '../../support/judging/consistent.js';
import {
  drain,
  makePipeline,
  makeWitness,
  openPipeline,
  unwilling,
  willing,
} from '../../support/pipeline.js';
import { testDatabase } from '../../support/servers/shared-servers.js';

const MINUTE_MS = 60_000;
const { SEALED, WITNESSED, PARTIAL, FAILED } = BatchStatus;

t.test('a submission is witnessed once every required witness has vouched', async (t) => {
  const first = await makeWitness(t, 'first');
  const second = await makeWitness(t, 'second');
  const optional = await makeWitness(t, 'optional', { required: false });
  second.manner = unwilling;
  optional.manner = unwilling;
  const test = await openPipeline(t, [first, second, optional]);
  const acknowledged = await test.submit(3);
  await drain(test.pipeline);
  t.same(await statuses(test), [SEALED]);
  second.manner = willing;
  await letPass(test, MINUTE_MS);
  await drain(test.pipeline);
  t.same(await statuses(test), [WITNESSED]);
  await assertConsistent(t, { ...test, acknowledged });
});

t.test('past its deadline a batch is partial or failed, and late evidence still witnesses it', async (t) => {
  const good = await makeWitness(t, 'good');
  const late = await makeWitness(t, 'late');
  good.manner = unwilling;
  late.manner = unwilling;
  const test = await openPipeline(t, [good, late], { deadlineMs: MINUTE_MS });
  const acknowledged = await test.submit(2);
  await drain(test.pipeline);
  await letPass(test, 2 * MINUTE_MS);
  await drain(test.pipeline);
  t.same(await statuses(test), [FAILED]);
  acknowledged.push(...(await test.submit(2)));
  good.manner = willing;
  await letPass(test, 60 * MINUTE_MS);
  await drain(test.pipeline);
  await letPass(test, 60 * MINUTE_MS);
  await drain(test.pipeline);
  t.same(await statuses(test), [FAILED, PARTIAL], 'a failed batch does not become partial');
  await assertConsistent(t, { ...test, acknowledged });
  late.manner = willing;
  await letPass(test, 60 * MINUTE_MS);
  await drain(test.pipeline);
  t.same(await statuses(test), [WITNESSED, WITNESSED]);
  t.same(await history(test), ['2:4', '4:3', '2:2', '4:2']);
  await drain(test.pipeline);
  t.equal((await history(test)).length, 4, 'each transition happens once');
  await assertConsistent(t, { ...test, acknowledged });
});

t.test('an outage of our own fails nothing', async (t) => {
  const witness = await makeWitness(t, 'present');
  const test = await openPipeline(t, [witness], { deadlineMs: MINUTE_MS });
  const acknowledged = await test.submit(2);
  await runJob(test.pipeline, sealJob(test.logId));
  await letPass(test, 60 * 24 * MINUTE_MS);
  await runJob(test.pipeline, settleJob(test.logId));
  t.same(await statuses(test), [SEALED], 'nobody was asked, so nobody has failed');
  witness.manner = unwilling;
  await runJob(test.pipeline, witnessJob(test.logId, 'present'));
  await letPass(test, 10 * MINUTE_MS);
  acknowledged.push(...(await test.submit(1)));
  await runJob(test.pipeline, sealJob(test.logId));
  await letPass(test, 60 * MINUTE_MS);
  await runJob(test.pipeline, settleJob(test.logId));
  t.same(await statuses(test), [FAILED, SEALED], 'a failure long before the deadline is none of that batch');
  witness.manner = willing;
  await drain(test.pipeline);
  t.same(await statuses(test), [WITNESSED, WITNESSED]);
  await assertConsistent(t, { ...test, acknowledged });
});

t.test('a batch waits for a witness removed from the policy until its deadline at most', async (t) => {
  const good = await makeWitness(t, 'good');
  const gone = await makeWitness(t, 'gone');
  const test = await openPipeline(t, [good, gone], { deadlineMs: MINUTE_MS });
  const acknowledged = await test.submit(2);
  await runJob(test.pipeline, sealJob(test.logId));
  await runJob(test.pipeline, witnessJob(test.logId, 'good'));
  acknowledged.push(...(await test.submit(2)));
  await runJob(test.pipeline, sealJob(test.logId));
  await setUpWitnesses(test.pool, [good.setup], { quorums: [], deadlineMs: MINUTE_MS });
  const after = test.another({ witnesses: [good.setup] });
  await runJob(after, settleJob(test.logId));
  t.same(await statuses(test), [SEALED, SEALED]);
  await letPass(test, 2 * MINUTE_MS);
  await runJob(after, settleJob(test.logId));
  t.same(await statuses(test), [PARTIAL, SEALED], 'the other one has not been asked');
  acknowledged.push(...(await test.submit(2)));
  await drain(after);
  t.same(await statuses(test), [PARTIAL, PARTIAL, WITNESSED]);
  await runJob(test.pipeline, witnessJob(test.logId, 'gone'));
  await runJob(test.pipeline, settleJob(test.logId));
  t.same(await statuses(test), [WITNESSED, WITNESSED, WITNESSED], 'late evidence counts as ever');
  await assertConsistent(t, { ...test, acknowledged });
});

t.test('a batch is settled by the policy that it was sealed under', async (t) => {
  const first = await makeWitness(t, 'first');
  const second = await makeWitness(t, 'second');
  second.manner = unwilling;
  const databaseUrl = await testDatabase(t);
  const before = await makePipeline(t, { databaseUrl, witnesses: [first] });
  const acknowledged = await before.submit(2);
  await runJob(before.pipeline, sealJob(before.logId));
  await setUpWitnesses(before.pool, [first.setup, second.setup], { quorums: [], deadlineMs: 3_600_000 });
  const after = { ...before.pipeline, witnesses: [first.setup, second.setup] };
  acknowledged.push(...(await before.submit(2)));
  await drain(after);
  t.same(await statuses(before), [WITNESSED, SEALED]);
  await assertConsistent(t, { ...before, acknowledged });
});

/** A log that is frozen with a batch that its witness has vouched for, and another that it would not vouch for. */
async function freezeUnsettled(t: Test) {
  const witness = await makeWitness(t, 'present');
  const test = await openPipeline(t, [witness], { deadlineMs: MINUTE_MS });
  await test.submit(2);
  await runJob(test.pipeline, sealJob(test.logId));
  await runJob(test.pipeline, witnessJob(test.logId, 'present'));
  await test.submit(2);
  await runJob(test.pipeline, sealJob(test.logId));
  witness.manner = unwilling;
  await letPass(test, MINUTE_MS / 2);
  await runJob(test.pipeline, witnessJob(test.logId, 'present'));
  await test.submit(1);
  await freezeLog(test.pool, test.logId, 'an older copy');
  witness.manner = willing;
  return { test, witness, askedBefore: witness.asked };
}

t.test(
  'a frozen log is settled by evidence alone until it is closed, and then by its deadlines',
  async (t) => {
    const { test, witness, askedBefore } = await freezeUnsettled(t);
    t.same(await statuses(test), [SEALED, SEALED]);
    await letPass(test, 2 * MINUTE_MS);
    await drain(test.pipeline);
    t.same(await statuses(test), [WITNESSED, SEALED], 'a newer copy of the database may know of evidence');
    const { environment, epoch, publicKey } = await getLog(test.pool, test.logId);
    await ensureLog(test.pool, {
      environment,
      epoch: epoch + 1,
      origin: 'live-2.log.example.com',
      publicKey,
    });
    await endLog(test.pool, test.logId);
    await drain(test.pipeline);
    t.same(await statuses(test), [WITNESSED, FAILED]);
    t.same(await history(test), ['2:2', '4:4'], 'what was not sealed stays so');
    t.equal(witness.asked, askedBefore, 'nobody is shown a frozen log');
  },
);
