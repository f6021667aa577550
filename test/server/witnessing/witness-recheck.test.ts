import { readFile } from 'node:fs/promises';
import t from 'tap';
import { WitnessKind } from '../../../gen/attestation/v1/bundle_pb.js';
import { findDueLogJobs } from '../../../src/server/pipeline/reconcile.js';
import { runJob } from '../../../src/server/pipeline/stages.js';
import { createRecheck } from '../../../src/server/witnessing/recheck.js';
import { listCoveringEvidence, recordLateEvidence } from '../../../src/server/witnessing/store/witnesses.js';
import { openPipeline } from '../../support/pipeline.js';
import { countedWitness, simulate } from '../../support/witnesses/cadence.js';
import { ask, evmScene, pollUntilLanded } from '../../support/witnesses/evm/scene.js';

t.test('evidence that a deep reorganisation has undone is an alarm', async (t) => {
  const scene = await evmScene(t);
  const { anvil } = scene;
  const witness = scene.witness();
  const { evidence, detail } = await pollUntilLanded(anvil, witness, await ask(witness));
  const test = await openPipeline(t, []);
  const kind = WitnessKind.EVM;
  const of = { logId: test.logId, witness: witness.name, treeSize: 1, kind };
  await recordLateEvidence(test.pool, { ...of, evidence, detail });
  const alarms: string[] = [];
  const open = (asked = witness) =>
    createRecheck(
      test.another({
        witnesses: [{ witness: asked, kind, environments: [1], required: false, everyMs: 0 }],
        observeAlarm: (name) => void alarms.push(name),
      }),
    );
  const recheck = open();
  for (let i = 0; i < 2; i++) await recheck();
  t.same(alarms, [], 'it is on the chain');

  await anvil.mine(20);
  await anvil.reorganise(22);
  await recheck();
  t.same(alarms, [], 'one answer may be of a node that is behind');
  await recheck();
  t.same(alarms, ['chain']);
  t.match(test.lines.at(-1), {
    level: 'fatal',
    witness: 'chain',
    origin: 'live.log.example.com',
    treeSize: 1,
    reason: /^block \d+ of the chain is another \(0x[0-9a-f]{64}\)$/,
  });

  const away = open(scene.witness({ url: 'http://127.0.0.1:1' }));
  for (let i = 0; i < 2; i++) await away();
  t.same(alarms, ['chain'], 'a node that is away says nothing about the chain');
});

t.test('after the runbook has deleted the lost evidence, one request covers it again', async (t) => {
  const chain = countedWitness({ name: 'chain', kind: 'evm' });
  const test = await openPipeline(t, [
    chain,
    countedWitness({ name: 'tsa', kind: 'rfc3161', required: true }),
  ]);
  const { pool, pipeline, logId } = test;
  await simulate(test, { seconds: 5, perSecond: 10 });
  const sizes = async () =>
    (
      await pool<{ size: number }[]>`
        SELECT tree_size AS size FROM evidence WHERE witness = 'chain' ORDER BY tree_size`
    ).map(({ size }) => size);
  t.same(await sizes(), [10, 20, 30, 40, 50]);
  const asked = chain.asked;
  const page = new URL('../../../../docs/monitoring.md', import.meta.url).pathname;
  const [, indented = ''] = /^ {3}```sql\n(.*?)^ {3}```$/ms.exec(await readFile(page, 'utf8')) ?? [];
  const statements = indented.replace('4711', '30').replaceAll(/^ *(?:BEGIN|COMMIT);$/gm, '');
  await pool.begin((tx) => tx.unsafe(statements).simple());
  t.same(await sizes(), [10, 20]);
  for (const job of await findDueLogJobs(pipeline)) await runJob(pipeline, job);
  t.same(await sizes(), [10, 20, 50], 'without a new submission');
  t.equal(chain.asked, asked + 1);
  const covering = await listCoveringEvidence(pool, [{ logId, treeSize: 30 }]);
  t.equal(covering.find(({ witness }) => witness === 'chain')?.treeSize, 50);
});
