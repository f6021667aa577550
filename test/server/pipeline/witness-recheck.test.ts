import t from 'tap';
import { WitnessKind } from '../../../gen/attestation/v1/bundle_pb.js';
import { createRecheck } from '../../../src/server/pipeline/witnesses/recheck.js';
import { recordLateEvidence } from '../../../src/server/store/witnesses/witnesses.js';
import { openPipeline } from '../../support/pipeline.js';
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
