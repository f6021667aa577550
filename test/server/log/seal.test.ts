/** Sealing when what it stands on changes under it: the database, its clock, its tiles, the register. */
import { readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { toHex } from '../../../src/proof/bytes/encoding.js';
import { rootOfLeafHashes } from '../../../src/proof/log/merkle.js';
import type { Pool } from '../../../src/server/database/connect.js';
import { sealJob } from '../../../src/server/jobs/job.js';
import { compareWithRegister, RegisterError } from '../../../src/server/log/register/register.js';
import { readLeafHashes } from '../../../src/server/log/store/leaves.js';
import { getLog } from '../../../src/server/log/store/logs.js';
import { runJob } from '../../../src/server/pipeline/stages.js';
import { letPass } from '../../support/breaking/database-clock.js';
import { entryPlace, setEarlierEntry } from '../../support/breaking/register.js';
import { assertConsistent } from '../../support/judging/consistent.js';
import { drain, makeWitness, openPipeline, type TestPipeline } from '../../support/pipeline.js';

const ORIGIN = 'live.log.example.com';
const HOUR_MS = 3_600_000;

const entryOf = ({ register }: TestPipeline) => entryPlace(register, ORIGIN);
const seal = ({ pipeline, logId }: TestPipeline) => runJob(pipeline, sealJob(logId));
const published = async ({ pool }: TestPipeline) =>
  (
    await pool<{ size: number }[]>`
    SELECT tree_size AS size FROM batch WHERE registered_at IS NOT NULL ORDER BY tree_size`
  ).map(({ size }) => size);

/** A pool whose queries are answered late: `between` runs once the database has carried one out. */
function answeringLate(pool: Pool, between: () => Promise<unknown>): Pool {
  const late = <T extends Promise<unknown>>(query: T) =>
    new Proxy(query, {
      get: (target, name) =>
        name === 'then'
          ? (...on: Parameters<T['then']>) =>
              target
                .then(async (rows) => {
                  await between();
                  return rows;
                })
                .then(...on)
          : Reflect.get(target, name),
    });
  return new Proxy(pool, { apply: (target, self, args) => late(Reflect.apply(target, self, args)) });
}

t.test(
  'a database that is replaced by an older one while a batch is sealed publishes none of it',
  async (t) => {
    const test = await openPipeline(t, [await makeWitness(t, 'one')]);
    await test.submit(2);
    await drain(test.pipeline);
    await test.submit(1);
    // The register gets ahead of the tables, as they fall behind it.
    const ahead = 'ab'.repeat(32);
    const pipeline = test.another({
      signerOf: (log) => {
        setEarlierEntry(test.register, ORIGIN, 9, ahead);
        return test.pipeline.signerOf(log);
      },
    });
    await runJob(pipeline, sealJob(test.logId));
    t.same(await published(test), [2]);
    t.equal(await readFile(join(test.register, ORIGIN), 'utf8'), `9 ${ahead}\n`);
    await t.test('and the next run freezes the log', async (t) => {
      t.match(await seal(test), { type: 'giveUp', reason: /the register has a checkpoint of size 9/ });
      t.ok((await getLog(test.pool, test.logId)).frozenAt);
      t.same(await published(test), [2]);
    });
  },
);

/** Leaves that are sealed up to 2, behind a register that has their root at size 4. */
async function fallBehind(t: Test) {
  const test = await openPipeline(t, [await makeWitness(t, 'one')]);
  await test.submit(2);
  await drain(test.pipeline);
  await test.submit(3);
  const root = toHex(rootOfLeafHashes(await readLeafHashes(test.pool, test.logId, 0, 4)));
  return { test, root };
}

t.test(
  'a published batch that a promoted standby lacks is sealed again if the leaves give its root',
  async (t) => {
    const { test, root } = await fallBehind(t);
    setEarlierEntry(test.register, ORIGIN, 4, root);
    await drain(test.pipeline);
    t.same(await published(test), [2, 4, 5]);
    t.equal((await getLog(test.pool, test.logId)).frozenAt, null);
    t.match(
      test.lines.filter(({ level }) => level === 'warn'),
      [{ origin: ORIGIN, register: 4, batches: 2, leaves: 5, msg: /sealing them again$/ }],
    );
  },
);

t.test('leaves with another root than the published one freeze the log', async (t) => {
  const { test } = await fallBehind(t);
  setEarlierEntry(test.register, ORIGIN, 4, 'ab'.repeat(32));
  const reason =
    'the register has a checkpoint of size 4 with another root than the leaves; the database has leaves up to 5 and batches up to 2';
  t.same(await seal(test), { type: 'giveUp', reason });
  t.same(await published(test), [2]);
});

t.test('the first checkpoint, published while another process compares, is no fork', async (t) => {
  const test = await openPipeline(t, []);
  const log = await getLog(test.pool, test.logId);
  await test.submit(1);
  const slow = answeringLate(test.pool, () => seal(test));
  t.match(await compareWithRegister(slow, test.pipeline.register, log), { state: 'consistent' });
  t.same(await published(test), [1]);
});

t.test('with its register lost, a log publishes nothing that was sealed before', async (t) => {
  const test = await openPipeline(t, []);
  const acknowledged = await test.submit(2);
  await drain(test.pipeline);
  acknowledged.push(...(await test.submit(2)));
  const full = test.another({
    register: { ...test.pipeline.register, replace: () => Promise.reject(new RegisterError('no space')) },
  });
  await t.rejects(runJob(full, sealJob(test.logId)), { message: 'no space' });
  await rename(entryOf(test), `${entryOf(test)}.away`);
  t.match(await seal(test), { type: 'retry' });
  t.same(await published(test), [2]);
  await rename(`${entryOf(test)}.away`, entryOf(test));
  await drain(test.pipeline);
  t.same(await published(test), [2, 4]);
  await assertConsistent(t, { ...test, acknowledged });
});

t.test('nothing is signed over tiles that are not those of the newest checkpoint', async (t) => {
  for (const leaves of [3, 256]) {
    const test = await openPipeline(t, []);
    const acknowledged = await test.submit(leaves);
    await drain(test.pipeline);
    acknowledged.push(...(await test.submit(1)));
    const [tile] = await test.pool<{ hashes: Buffer }[]>`SELECT hashes FROM tile ORDER BY level DESC LIMIT 1`;
    const level = leaves < 256 ? 0 : 1;
    const wrong = Buffer.from(tile!.hashes);
    wrong.writeUInt8(wrong.readUInt8(5) ^ 1, 5);
    await test.pool`UPDATE tile SET hashes = ${wrong} WHERE level = ${level}`;
    await t.rejects(seal(test), {
      message: /the tiles of live.log.example.com are not those of its checkpoint/,
    });
    t.same(await published(test), [leaves]);
    await test.pool`UPDATE tile SET hashes = ${tile!.hashes} WHERE level = ${level}`;
    await drain(test.pipeline);
    await assertConsistent(t, { ...test, acknowledged });
  }
});

t.test('a database clock that steps back does not stop sealing', async (t) => {
  const test = await openPipeline(t, []);
  test.pipeline.settings.batchIntervalMs = 1_000;
  await test.submit(1);
  await seal(test);
  await letPass(test, -HOUR_MS);
  await test.submit(1);
  t.same(await seal(test), { type: 'done' });
  t.same(await published(test), [1, 2]);
});
