/** An installation moves from a folder to a witness as its register, and back. */
import t from 'tap';
import { noteKey } from '../../../../src/proof/log/note.js';
import type { Register } from '../../../../src/server/log/register/register.js';
import { getLog } from '../../../../src/server/log/store/logs.js';
import { logManager } from '../../../../src/server/process/log-manager.js';
import { openRegister } from '../../../../src/server/witnessing/register/open-register.js';
import { installClock } from '../../../support/breaking/database-clock.js';
import { runHere } from '../../../support/calling/run-cli.js';
import { drain, makePipeline } from '../../../support/pipeline.js';
import { testDatabase } from '../../../support/servers/shared-servers.js';
import { type C2spWitness, startC2spWitness } from '../../../support/witnesses/c2sp-witness.js';

const ORIGIN = 'live.log.example.com';

t.test('fill-register brings a folder and a witness up to the database', async (t) => {
  const databaseUrl = await testDatabase(t);
  await installClock(databaseUrl);
  const test = await makePipeline(t, { databaseUrl, witnesses: [] });
  const { pool, pipeline } = test;
  const { publicKey } = await getLog(pool, test.logId);
  const keys = [noteKey(ORIGIN, publicKey)];
  const folder = pipeline.register;
  const witness = await openRegister(await startC2spWitness(t, [{ origin: ORIGIN, keys }]));
  const stranger = await openRegister(await startC2spWitness(t, []));
  const fill = (register: Register) => logManager(pool, register).fillRegister();
  const sizeIn = async (register: Register) => (await register.read(ORIGIN))?.size;
  const publish = async (register: Register, count: number) => {
    await test.submit(count);
    await drain(test.another({ register }));
    const [row] = await pool<{ size: number }[]>`
      SELECT max(tree_size) AS size FROM batch WHERE registered_at IS NOT NULL`;
    return row?.size;
  };

  t.equal(await publish(folder, 2), 2);
  t.equal(await publish(witness, 1), 2, 'nothing is published with a register that lacks the log');
  t.same(await fill(witness), [ORIGIN]);
  t.equal(await publish(witness, 1), 4);
  t.same(await fill(witness), [], 'it is complete');

  t.equal(await sizeIn(folder), 2, 'the folder was not written meanwhile');
  t.same(await fill(folder), [ORIGIN]);
  t.equal(await sizeIn(folder), 4);
  t.equal(await publish(folder, 1), 5);
  t.same(await fill(witness), [ORIGIN], 'with a proof from what it has cosigned');
  t.equal(await sizeIn(witness), 5);

  await t.test('the CLI fills another witness', async (t) => {
    const attestLog = ({ url, verifierKeys }: C2spWitness, ...args: string[]) =>
      runHere(['log', ...args], {
        env: {
          DATABASE_URL: databaseUrl,
          CHECKPOINT_REGISTER: url,
          CHECKPOINT_REGISTER_KEY: verifierKeys.join(' '),
        },
      });
    const fresh = await startC2spWitness(t, [{ origin: ORIGIN, keys }]);
    t.match((await attestLog(fresh, 'status')).stdout, new RegExp(`${ORIGIN} +5 +5 +- `), 'it has nothing');
    t.same(await attestLog(fresh, 'fill-register'), { code: 0, stdout: `restored ${ORIGIN}\n`, stderr: '' });
    t.same(JSON.parse((await attestLog(fresh, 'fill-register', '--json')).stdout), { filled: [] });
    t.match((await attestLog(fresh, 'status')).stdout, new RegExp(`${ORIGIN} +5 +5 +5 +ok`));
    const unwilling = await attestLog(await startC2spWitness(t, []), 'fill-register');
    t.match(unwilling, { code: 1, stdout: '', stderr: new RegExp(`it does not know ${ORIGIN}`) });
  });

  await t.rejects(fill(stranger), /404 .*: it does not know live\.log\.example\.com/);
  await pool`UPDATE batch SET registered_at = NULL WHERE tree_size = 5`;
  t.same(await fill(witness), [], 'what is beyond the database stays');
  await pool`UPDATE batch SET root_hash = sha256('') WHERE tree_size = 2`;
  const old = await openRegister(t.testdir());
  await old.replace(undefined, {
    ...(await folder.read(ORIGIN))!,
    size: 2,
    note: '',
    proveConsistency: async () => [],
  });
  await t.rejects(fill(old), /another root at size 2 than the database/);
  t.equal(await sizeIn(old), 2);
});
