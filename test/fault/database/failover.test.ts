/** The database is replaced by one that lacks what was acknowledged, or a process is alone on the wrong one. */
import t, { type Test } from 'tap';
import { newCreation, send } from '../../support/calling/load.js';
import { setScene } from '../../support/fault-fixture.js';
import {
  makeInstallation,
  makeUnlimitedKey,
  type ServiceProcess,
} from '../../support/servers/installation.js';
import { backUp } from '../../support/servers/private-servers.js';
import { copyDatabase } from '../../support/servers/shared-servers.js';
import { until } from '../../support/until.js';
import { untilWitnessed } from '../../support/wait-for-idle.js';

const ORIGIN = 'live.log.example.com';

const fatalOf = ({ lines }: ServiceProcess) => lines.filter(({ level }) => level === 'fatal');
const untilFrozen = (api: ServiceProcess) => until('the log is frozen', () => fatalOf(api).length > 0);

/** Three submissions of which the first is witnessed, and what puts the database back to where it had one. */
async function loseTwo(t: Test) {
  const scene = await setScene(t);
  const { installation, pool, servers, apiKey } = scene;
  const { postgres } = servers;
  const api = await installation.startApi();
  const worker = await installation.startWorker();
  const create = async (to = api) => send(to.baseUrl, apiKey, newCreation());
  const untilBack = () => until('the database is back', async () => (await pool`SELECT 1`).length === 1);
  t.equal((await create()).status, 201);
  await untilWitnessed(pool);
  await worker.stop();
  await postgres.stop();
  const promote = await backUp(postgres);
  await postgres.start();
  await untilBack();
  await until('two more are acknowledged', async () => {
    const { status, body } = await create();
    return status === 201 && body.log_index === 2;
  });
  const failOver = async () => {
    await postgres.stop();
    await promote();
    await postgres.start();
    await untilBack();
  };
  return { ...scene, api, create, failOver };
}

t.test('a replica that lacks acknowledged submissions does not reassign their indexes', async (t) => {
  const { api, create, failOver, pool } = await loseTwo(t);
  await failOver();
  const { status, body } = await create();
  t.match(
    { status, body },
    { status: 503, body: { error: { message: /^the log is frozen: the submission at index 2/ } } },
  );
  t.match(fatalOf(api), [
    {
      msg: 'the log is frozen',
      origin: ORIGIN,
      reason:
        /^the submission at index 2 \(leaf [0-9a-f]{64}\) was acknowledged, and the database ends at 1: .* from index 1 on are missing$/,
    },
  ]);
  t.equal((await fetch(`${api.opsUrl}/readyz/live`)).status, 503);
  t.same(await pool`SELECT max(log_index) AS last FROM submission`, [{ last: 0 }]);
});

t.test('it is detected without any request', async (t) => {
  const { api, failOver } = await loseTwo(t);
  await failOver();
  await untilFrozen(api);
  t.match(fatalOf(api)[0]?.reason, /acknowledged submissions from index 1 on are missing/);
});

t.test('indexes that another process assigned meanwhile are detected by their leaves', async (t) => {
  const { api, create, failOver, installation } = await loseTwo(t);
  api.standStill();
  await failOver();
  const other = await installation.startApi();
  for (let i = 0; i < 4; i++) t.equal((await create(other)).status, 201);
  api.goOn();
  await untilFrozen(api);
  t.match(
    fatalOf(api)[0]?.reason,
    /^the submission at index 2 .* and another one has its place in the database/,
  );
  await until('it holds for all', async () => (await create(other)).status === 503);
});

t.test('a process on a stale database detects the advance of the others', async (t) => {
  const installation = await makeInstallation(t);
  const pool = installation.openPool();
  const apiKey = await makeUnlimitedKey(pool);
  const alone = await installation.startApi();
  installation.env.DATABASE_URL = await copyDatabase(t, installation.databaseUrl);
  const api = await installation.startApi();
  await installation.startWorker();
  t.equal((await send(api.baseUrl, apiKey, newCreation())).status, 201);
  await untilFrozen(alone);
  t.match(
    fatalOf(alone)[0]?.reason,
    /^the register has a checkpoint of size 1, the database has leaves up to 0 and batches up to 0/,
  );
  t.equal((await send(alone.baseUrl, apiKey, newCreation())).status, 503);
  t.equal((await send(api.baseUrl, apiKey, newCreation())).status, 201, 'the others go on');
});
