/** A witness as the register that lies: it can stop the publishing, and it cannot have the log frozen. */
import t, { type Test } from 'tap';
import { checkpointBody } from '../../../../src/proof/log/checkpoint.js';
import { encodeSignatureLine, noteKey, parseNote } from '../../../../src/proof/log/note.js';
import type { Answer } from '../../../../src/server/cosigner/cosigner.js';
import { sealJob } from '../../../../src/server/jobs/job.js';
import { monitorWrites } from '../../../../src/server/log/register/monitored-register.js';
import { findRegisterProblems } from '../../../../src/server/log/register/register-check.js';
import { getLog } from '../../../../src/server/log/store/logs.js';
import { runJob } from '../../../../src/server/pipeline/stages.js';
import { openRegister } from '../../../../src/server/witnessing/register/open-register.js';
import { openPipeline } from '../../../support/pipeline.js';
import { startC2spWitness } from '../../../support/witnesses/c2sp-witness.js';

const ORIGIN = 'live.log.example.com';
const text = (status: number, body = ''): Answer => ({ status, contentType: 'text/plain', body });

/** A log with a published checkpoint, and a leaf that is to be sealed. */
async function open(t: Test) {
  const test = await openPipeline(t, []);
  const { publicKey } = await getLog(test.pool, test.logId);
  const known = { origin: ORIGIN, keys: [noteKey(ORIGIN, publicKey)] };
  const witness = await startC2spWitness(t, [known]);
  const register = monitorWrites(await openRegister(witness));
  const pipeline = test.another({ register });
  const seal = () => runJob(pipeline, sealJob(test.logId));
  await test.submit(2);
  await seal();
  await test.submit(1);
  return {
    witness,
    seal,
    problems: async () =>
      (await findRegisterProblems(test.pool, register)).map(({ reason }) => reason).join(),
    published: async () => {
      const rows = await test.pool`SELECT FROM batch WHERE registered_at IS NOT NULL`;
      return rows.length;
    },
    isFrozen: async () => (await getLog(test.pool, test.logId)).frozenAt !== null,
  };
}

type Scene = Awaited<ReturnType<typeof open>>;

async function goesOn(t: Test, { witness, seal, problems, published, isFrozen }: Scene): Promise<void> {
  t.equal(await published(), 1, 'nothing is published');
  t.notOk(await isFrozen());
  witness.monitored = () => undefined;
  witness.behaviour = () => undefined;
  await seal();
  t.equal(await published(), 2);
  t.equal(await problems(), '');
}

t.test('a larger checkpoint that the log did not sign freezes nothing', async (t) => {
  const scene = await open(t);
  const body = checkpointBody({ origin: ORIGIN, size: 99, rootHash: new Uint8Array(32) });
  scene.witness.monitored = (note) => {
    // It knows nothing of the test log.
    if (note === undefined) return undefined;
    const [signature] = parseNote(note).signatures;
    if (signature === undefined) throw new Error('the note is not signed');
    return text(200, `${body}\n${encodeSignatureLine(signature)}${scene.witness.sign(body)}`);
  };
  t.match(await scene.seal(), { type: 'retry' });
  t.match(await scene.problems(), /has the log live\.log\.example\.com of another installation/);
  await goesOn(t, scene);
});

t.test('a rejection without a signed reason freezes nothing, and readiness has an alarm', async (t) => {
  const scene = await open(t);
  scene.witness.behaviour = () => text(422);
  await t.rejects(scene.seal(), { name: 'RegisterError', message: /ALARM/ });
  t.match(await scene.problems(), /cannot be written: .*422: ALARM: what it has cosigned of live/);
  await goesOn(t, scene);
});

t.test('a witness that denies to have anything stops the publishing', async (t) => {
  const scene = await open(t);
  scene.witness.monitored = () => text(404);
  t.match(await scene.seal(), { type: 'retry' });
  t.match(await scene.problems(), /lacks the log live\.log\.example\.com .* see attest log --help/);
  await goesOn(t, scene);
});
