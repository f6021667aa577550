/**
 * The fault table of sealing, publishing, asking and settling: at each statement the connection breaks, before it took
 * effect and after. Another worker then finds everything from the tables and brings it to its end.
 */
import t, { type Test } from 'tap';
import type { Job } from '../../../gen/attestation/jobs/v1/jobs_pb.js';
import { connectPool } from '../../../src/server/database/connect.js';
import { sealJob, settleJob, witnessJob } from '../../../src/server/jobs/job.js';
import type { Pipeline } from '../../../src/server/pipeline/pipeline.js';
import { runJob } from '../../../src/server/pipeline/stages.js';
import { type Break, startProxy, type TcpProxy } from '../../support/breaking/proxy.js';
import { history } from '../../support/judging/batch-states.js';
import { assertConsistent } from '../../support/judging/consistent.js';
import { someOf } from '../../support/long.js';
import { drain, makePipeline, makeWitness, type TestPipeline } from '../../support/pipeline.js';
import { testDatabase } from '../../support/servers/shared-servers.js';
import { letLeasesRunOut } from '../../support/wait-for-idle.js';

/** A worker whose way to the database is a proxy, beside one that has a way of its own. */
type Scene = TestPipeline & { faulty: Pipeline; proxy: TcpProxy };

async function open(t: Test): Promise<Scene> {
  const databaseUrl = new URL(await testDatabase(t));
  const witnesses = [await makeWitness(t, 'one')];
  const test = await makePipeline(t, { databaseUrl: databaseUrl.href, witnesses });
  const proxy = await startProxy({ host: databaseUrl.hostname, port: Number(databaseUrl.port) });
  t.teardown(proxy.close);
  databaseUrl.port = String(proxy.port);
  const pool = connectPool({ url: databaseUrl.href, name: 'faulty', max: 4, statementTimeoutMs: 10_000 });
  t.teardown(() => pool.end({ timeout: 1 }));
  return { ...test, proxy, faulty: test.another({ pool }) };
}

/** A statement of a stage; `nth` of those that match, where it is not the first. */
type Point = { stage: 'seal' | 'witness' | 'settle'; step: string; text: string; nth?: number };

const POINTS: Point[] = [
  { stage: 'seal', step: 'the lock', text: 'pg_try_advisory_xact_lock' },
  { stage: 'seal', step: 'the comparison with the register', text: "'ofSize'" },
  { stage: 'seal', step: 'the leaves', text: 'string_agg(leaf_hash' },
  { stage: 'seal', step: 'the batch, its tiles and its contents', text: 'INSERT INTO batch ' },
  { stage: 'seal', step: 'the commit of the batch', text: 'COMMIT' },
  { stage: 'seal', step: 'the comparison before publication', text: "'ofSize'", nth: 2 },
  { stage: 'seal', step: 'the mark of publication', text: 'SET registered_at' },
  { stage: 'witness', step: 'the lease', text: 'SET attempt = attempt + 1' },
  { stage: 'witness', step: 'the evidence', text: 'INSERT INTO evidence' },
  { stage: 'witness', step: 'the commit of the evidence', text: 'COMMIT' },
  { stage: 'settle', step: 'the transition', text: 'INSERT INTO batch_transition' },
];

const BREAKS: Break[] = ['before the answer arrives', 'before the request arrives'];

/** The stages before the one that is to fail, run without a fault. */
async function prepare({ pipeline, logId }: Scene, stage: Point['stage']): Promise<Job> {
  const jobs = { seal: sealJob(logId), witness: witnessJob(logId, 'one'), settle: settleJob(logId) };
  if (stage !== 'seal') await runJob(pipeline, jobs.seal);
  if (stage === 'settle') await runJob(pipeline, jobs.witness);
  return jobs[stage];
}

for (const { stage, step, text, nth = 1 } of POINTS) {
  for (const when of someOf(BREAKS, 1)) {
    t.test(
      `${stage}: another worker completes the job after a connection lost at ${step}, ${when}`,
      async (t) => {
        const scene = await open(t);
        const acknowledged = await scene.submit(3);
        const job = await prepare(scene, stage);
        let seen = 0;
        const broken = scene.proxy.breakNext(when, (sent) => sent.includes(text) && ++seen === nth);
        const ended = runJob(scene.faulty, job).then(
          () => 'done',
          () => 'failed',
        );
        await broken;
        await ended;
        await assertConsistent(t, { ...scene, acknowledged, sealed: false });
        await letLeasesRunOut(scene.pool);
        await drain(scene.another());
        t.same(await history(scene), ['3:2'], 'it is witnessed, once');
        await assertConsistent(t, { ...scene, acknowledged });
      },
    );
  }
}

t.test('a root that does not reach the register is not published', async (t) => {
  const scene = await open(t);
  const acknowledged = await scene.submit(3);
  const full = scene.another({
    register: {
      ...scene.pipeline.register,
      replace: () => Promise.reject(Object.assign(new Error('no space left'), { code: 'ENOSPC' })),
    },
  });
  await t.rejects(runJob(full, sealJob(scene.logId)), { code: 'ENOSPC' });
  t.same(await scene.pool`SELECT tree_size, registered_at FROM batch`, [
    { tree_size: 3, registered_at: null },
  ]);
  await drain(full);
  t.equal((await scene.pool`SELECT FROM evidence`).length, 0, 'and no witness sees it');
  await drain(scene.pipeline);
  t.same(await history(scene), ['3:2']);
  await assertConsistent(t, { ...scene, acknowledged });
});

t.test('a root that reached the register though that was reported as failed is published next', async (t) => {
  const scene = await open(t);
  const acknowledged = await scene.submit(3);
  const { register } = scene.pipeline;
  const unsure = scene.another({
    register: {
      ...register,
      replace: async (standing, next) => {
        await register.replace(standing, next);
        throw new Error('the disk is slow');
      },
    },
  });
  await t.rejects(runJob(unsure, sealJob(scene.logId)), { message: 'the disk is slow' });
  acknowledged.push(...(await scene.submit(2)));
  await drain(scene.pipeline);
  t.same(await history(scene), ['3:2', '5:2']);
  await assertConsistent(t, { ...scene, acknowledged });
});

t.test('concurrent workers seal, request and settle as one would', async (t) => {
  const scene = await open(t);
  const acknowledged = [];
  for (let round = 0; round < 10; round++) {
    acknowledged.push(...(await scene.submit(12)));
    await Promise.all([scene.faulty, scene.another(), scene.another()].map(drain));
  }
  await drain(scene.pipeline);
  await assertConsistent(t, { ...scene, acknowledged });
  const errors = scene.lines.filter(({ level }) => level === 'error' || level === 'fatal');
  t.same(errors, []);
});

t.test('a log longer than a batch may be is sealed batch by batch, over tile borders', async (t) => {
  const databaseUrl = await testDatabase(t);
  const witnesses = [await makeWitness(t, 'one')];
  const test = await makePipeline(t, { databaseUrl, witnesses, batchMaxLeaves: 100 });
  const acknowledged = [...(await test.submit(255)), ...(await test.submit(2)), ...(await test.submit(60))];
  await drain(test.pipeline);
  const { batches } = await assertConsistent(t, { ...test, acknowledged });
  t.equal(batches, 4);
});
