/** Partitions are ahead of a log's leaves; without one nothing is stored until there is; old ones can be dropped. */
import t, { type Test } from 'tap';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { ApiError } from '../../../src/server/core/errors.js';
import type { Pool } from '../../../src/server/database/connect.js';
import { freezeLog } from '../../../src/server/log/store/logs.js';
import {
  addSparePartitions,
  detachPartition,
  dropPartition,
  findUnprepared,
  listPartitions,
} from '../../../src/server/log/store/partitions.js';
import { makeSmallPartitions } from '../../support/archives/small-partitions.js';
import { drain } from '../../support/pipeline.js';
import { finish, openSequencer, outcomes, type SequencerScene } from '../../support/servers/sequencer.js';

/** Of a partition; a log's first is replaced by one of as many. */
const LEAVES = 64;

/** The first partitions of both logs are small, without a spare one. */
async function openSmall(t: Test, lacking: number[] = []): Promise<SequencerScene> {
  const scene = await openSequencer(t, { onLackingPartition: (logId) => lacking.push(logId) });
  await makeSmallPartitions(scene.pool, LEAVES);
  return scene;
}

const store = async (t: Test, { accept, makeRows }: SequencerScene, count: number) =>
  t.ok(outcomes(await accept(makeRows(count))).every((outcome) => outcome === 'stored'));

const rangesOf = async (pool: Pool, logId: number) =>
  (await listPartitions(pool, logId)).map(({ name, firstIndex, endIndex }) => [name, firstIndex, endIndex]);

t.test('a log has a partition once it is there, and a whole one ahead from then on', async (t) => {
  const scene = await openSmall(t);
  const { pool, logId } = scene;
  t.same(await rangesOf(pool, logId), [[`submission_${logId}_0`, 0, LEAVES]]);
  t.same(
    (await findUnprepared(pool)).map((log) => log.hasRoom),
    [true, true],
  );
  const added = (
    await Promise.all([addSparePartitions(pool, LEAVES), addSparePartitions(pool, LEAVES)])
  ).flat();
  t.same(added.sort(), ['submission_1_1', 'submission_2_1'], 'once for each log');
  t.same(await findUnprepared(pool), []);
  await store(t, scene, LEAVES);
  t.match(await findUnprepared(pool), [{ logId, hasRoom: true }], 'the next leaf begins the last one');
  t.same(await addSparePartitions(pool, LEAVES), [`submission_${logId}_2`]);
  t.same(await rangesOf(pool, logId), [
    [`submission_${logId}_0`, 0, LEAVES],
    [`submission_${logId}_1`, LEAVES, 2 * LEAVES],
    [`submission_${logId}_2`, 2 * LEAVES, 3 * LEAVES],
  ]);
  await store(t, scene, LEAVES + 10);
  await freezeLog(pool, logId, 'a test');
  t.same(await addSparePartitions(pool, LEAVES), [], 'nothing is written to a frozen log');
});

t.test('a partition is added while a write is under way', async (t) => {
  const scene = await openSmall(t);
  const writer = await scene.pool.reserve();
  await writer`BEGIN`;
  await writer`UPDATE submission SET metadata = '{}' WHERE log_id = ${scene.logId}`;
  t.equal((await addSparePartitions(scene.pool)).length, 2);
  await writer`ROLLBACK`;
  writer.release();
  await store(t, scene, 10);
});

t.test('without a partition submissions get 503 and are not stored, until there is one', async (t) => {
  const lacking: number[] = [];
  const scene = await openSmall(t, lacking);
  const { pool, logId, accept, makeRows } = scene;
  await store(t, scene, LEAVES - 10);
  t.same(lacking, []);
  for (const result of await accept(makeRows(20))) {
    if (result.status === 'fulfilled' || !(result.reason instanceof ApiError))
      throw new Error('it is stored');
    t.equal(result.reason.code, ErrorCode.SERVICE_UNAVAILABLE);
    t.match(result.reason.message, /no partition for the next leaves/);
  }
  t.same(lacking, [logId], 'one call, none of which is stored');
  t.equal((await pool`SELECT FROM submission`).length, LEAVES - 10);
  await store(t, scene, 10);
  t.match(await findUnprepared(pool), [
    { logId, hasRoom: false },
    { logId: 2, hasRoom: true },
  ]);
  t.equal((await addSparePartitions(pool, LEAVES)).length, 3);
  await store(t, scene, 20);
  await finish(t, scene);
});

t.test('a partition that the log has left behind is detached while others write, or dropped', async (t) => {
  const scene = await openSmall(t);
  const { pool, logId } = scene;
  for (let n = 0; n < 3; n++) {
    await addSparePartitions(pool, LEAVES);
    await store(t, scene, LEAVES);
  }
  await drain(scene.pipeline);
  const [first, second, third, last] = await listPartitions(pool, logId);
  if (!first || !second || !third || !last) throw new Error('there are fewer partitions');
  await Promise.all([detachPartition(pool, first), store(t, scene, 10)]);
  t.equal((await pool`SELECT FROM submission_1_0`).length, LEAVES, 'its rows are kept');
  t.same(await pool`SELECT min(log_index) AS first FROM submission WHERE log_id = ${logId}`, [
    { first: LEAVES },
  ]);
  await detachPartition(pool, first);
  await dropPartition(pool, first);
  t.same(await pool`SELECT to_regclass(${first.name}) AS gone`, [{ gone: null }]);
  await dropPartition(pool, second);
  t.same(
    (await listPartitions(pool, logId)).map(({ name }) => name),
    [third.name, last.name],
  );
  await t.rejects(dropPartition(pool, last), /has the newest leaves of log 1/);
  await store(t, scene, 10);
  t.same(await pool`SELECT max(log_index) AS last FROM submission WHERE log_id = ${logId}`, [
    { last: 3 * LEAVES + 19 },
  ]);
});

t.test('an interrupted detachment is finished', async (t) => {
  const scene = await openSmall(t);
  const { pool, logId } = scene;
  await addSparePartitions(pool, LEAVES);
  await store(t, scene, LEAVES + 1);
  const [first] = await listPartitions(pool, logId);
  if (first === undefined) throw new Error('there is no partition');
  const holder = await scene.hold(async (sql) => {
    await sql`BEGIN`;
    await sql`SELECT FROM submission`;
  });
  const session = await pool.reserve();
  await session`SET statement_timeout = 500`;
  const detaching = session.unsafe(`ALTER TABLE submission DETACH PARTITION ${first.name} CONCURRENTLY`);
  await t.rejects(detaching, { code: '57014' });
  await session`RESET statement_timeout`;
  session.release();
  await holder.release();
  await store(t, scene, 1);
  await detachPartition(pool, first);
  t.equal((await pool.unsafe(`SELECT FROM ${first.name}`)).length, LEAVES);
  t.equal((await pool`SELECT FROM submission`).length, 2);
});
