/** Quorums: batches that need some of several witnesses. */
import t, { type Test } from 'tap';
import { BatchStatus } from '../../../gen/attestation/v1/batches_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { listPolicies } from '../../../src/server/log/store/policies.js';
import { letPass } from '../../support/breaking/database-clock.js';
import { history, statuses } from '../../support/judging/batch-states.js';
import { assertConsistent } from '../../support/judging/consistent.js';
import {
  drain,
  makeWitness,
  openPipeline,
  type TestWitness,
  unwilling,
  willing,
} from '../../support/pipeline.js';

const MINUTE_MS = 60_000;
const { SEALED, WITNESSED, PARTIAL, FAILED } = BatchStatus;
const MEMBERS = ['tsa-a', 'tsa-b', 'tsa-c'];

/** A pipeline whose batches need two of three witnesses. */
async function openQuorum(t: Test, others: readonly TestWitness[] = []) {
  const made = await Promise.all(MEMBERS.map((name) => makeWitness(t, name, { required: false })));
  const [a, b, c] = made as [TestWitness, TestWitness, TestWitness];
  const quorums = [{ threshold: 2, members: MEMBERS }];
  const test = await openPipeline(t, [...made, ...others], { quorums, deadlineMs: MINUTE_MS });
  return { test, a, b, c };
}

t.test('a batch is witnessed once the threshold of its quorum covers it', async (t) => {
  const { test, b, c } = await openQuorum(t);
  b.manner = unwilling;
  c.manner = unwilling;
  const acknowledged = await test.submit(2);
  await drain(test.pipeline);
  t.same(await statuses(test), [SEALED], 'one is too few');
  c.manner = willing;
  await letPass(test, MINUTE_MS / 2);
  await drain(test.pipeline);
  t.same(await statuses(test), [WITNESSED], 'the second is enough');
  await assertConsistent(t, { ...test, acknowledged });
});

t.test('a quorum is met by other members for other batches', async (t) => {
  const { test, a, c } = await openQuorum(t);
  c.manner = unwilling;
  const acknowledged = await test.submit(1);
  await drain(test.pipeline);
  [a.manner, c.manner] = [unwilling, willing];
  await letPass(test, MINUTE_MS / 2);
  acknowledged.push(...(await test.submit(1)));
  await drain(test.pipeline);
  t.same(await statuses(test), [WITNESSED, WITNESSED]);
  await assertConsistent(t, { ...test, acknowledged });
});

t.test('past the deadline a batch is partial with one of two, and failed with none', async (t) => {
  const { test, a, b, c } = await openQuorum(t);
  for (const witness of [a, b, c]) witness.manner = unwilling;
  const acknowledged = await test.submit(1);
  await drain(test.pipeline);
  await letPass(test, 2 * MINUTE_MS);
  await drain(test.pipeline);
  t.same(await statuses(test), [FAILED]);
  a.manner = willing;
  acknowledged.push(...(await test.submit(1)));
  await letPass(test, 60 * MINUTE_MS);
  await drain(test.pipeline);
  await letPass(test, 60 * MINUTE_MS);
  await drain(test.pipeline);
  t.same(await statuses(test), [FAILED, PARTIAL]);
  const [transition] = await test.pool`
    SELECT landed, missing FROM batch_transition WHERE status = ${PARTIAL}`;
  t.same(transition, { landed: ['tsa-a'], missing: ['tsa-b', 'tsa-c'] });
  b.manner = willing;
  await letPass(test, 60 * MINUTE_MS);
  await drain(test.pipeline);
  t.same(await statuses(test), [WITNESSED, WITNESSED], 'late evidence still witnesses it');
  t.same(await history(test), ['1:4', '2:3', '1:2', '2:2'], 'each transition happens once');
  await assertConsistent(t, { ...test, acknowledged });
});

t.test('a quorum that may still be met fails nothing', async (t) => {
  const { test, a, b, c } = await openQuorum(t);
  a.manner = unwilling;
  const hanging = [b, c];
  await test.submit(1);
  for (const witness of hanging) witness.setup.everyMs = 0;
  await test.pool`UPDATE witness_state SET next_attempt_at = 'infinity' WHERE witness IN ('tsa-b', 'tsa-c')`;
  await drain(test.pipeline);
  await letPass(test, 2 * MINUTE_MS);
  await drain(test.pipeline);
  t.same(await statuses(test), [SEALED], 'two were not asked, and two are enough');
  await test.pool`UPDATE witness_state SET next_attempt_at = clock_timestamp() WHERE witness = 'tsa-b'`;
  b.manner = unwilling;
  await drain(test.pipeline);
  t.same(await statuses(test), [FAILED], 'one is left, and two are needed');
});

t.test('a required witness is needed beside a quorum', async (t) => {
  const required = await makeWitness(t, 'required');
  required.manner = unwilling;
  const { test } = await openQuorum(t, [required]);
  const acknowledged = await test.submit(1);
  await drain(test.pipeline);
  t.same(await statuses(test), [SEALED]);
  await letPass(test, 2 * MINUTE_MS);
  await drain(test.pipeline);
  t.same(await statuses(test), [PARTIAL]);
  const [transition] = await test.pool`SELECT landed, missing FROM batch_transition`;
  t.same(transition, { landed: MEMBERS, missing: ['required'] });
  await assertConsistent(t, { ...test, acknowledged });
});

t.test('a quorum without a member in an environment does not apply there', async (t) => {
  const { test } = await openQuorum(t);
  const policies = await listPolicies(test.pool);
  t.match(policies, [
    { environment: Environment.LIVE, quorums: [{ threshold: 2, members: MEMBERS }] },
    { environment: Environment.TEST, quorums: [] },
  ]);
});
