/** Processes killed by SIGKILL while clients submit: nothing acknowledged is lost, moved or duplicated. */
import t from 'tap';
import { startLoad } from '../../support/calling/load.js';
import { setScene } from '../../support/fault-fixture.js';
import type { ServiceProcess } from '../../support/servers/installation.js';
import { letLeasesRunOut, untilWitnessed } from '../../support/wait-for-idle.js';

const scene = await setScene(t);
const { installation, pool, servers } = scene;
const apis: ServiceProcess[] = [await installation.startApi(), await installation.startApi()];
const workers: ServiceProcess[] = [await installation.startWorker(), await installation.startWorker()];
const load = () =>
  startLoad({
    apis: () => apis.map(({ baseUrl }) => baseUrl),
    apiKey: scene.apiKey,
    clients: 6,
    most: 400,
  });

t.test('two APIs and two workers over one log leave no gap and no duplicate', async (t) => {
  const running = load();
  await running.more(100);
  await running.stop();
  await untilWitnessed(pool);
  t.same([...running.statuses.keys()], [201]);
  t.match(await scene.assertConsistent(t, running.acknowledged), { verified: running.acknowledged.length });
});

t.test('an API killed under load loses nothing that it acknowledged', async (t) => {
  const running = load();
  for (let i = 0; i < 2; i++) {
    await running.more(40);
    await apis[0]!.kill();
    apis[0] = await installation.startApi();
  }
  await running.stop();
  await letLeasesRunOut(pool);
  await untilWitnessed(pool);
  await scene.assertConsistent(t, running.acknowledged);
});

t.test('a worker killed under load leaves its work to be done by others', async (t) => {
  const running = load();
  for (let i = 0; i < 2; i++) {
    await running.more(40);
    await workers[i % 2]!.kill();
    workers[i % 2] = await installation.startWorker();
  }
  await running.stop();
  await letLeasesRunOut(pool);
  await untilWitnessed(pool);
  await scene.assertConsistent(t, running.acknowledged);
});

t.test('Postgres killed under load keeps everything that was acknowledged', async (t) => {
  const running = load();
  for (let i = 0; i < 2; i++) {
    await running.more(40);
    await servers.postgres.kill();
    await servers.postgres.start();
  }
  await running.more(40);
  await running.stop();
  await letLeasesRunOut(pool);
  await untilWitnessed(pool);
  await scene.assertConsistent(t, running.acknowledged);
});

t.test('nats-server killed under load delays, and loses nothing', async (t) => {
  const running = load();
  for (let i = 0; i < 2; i++) {
    await running.more(40);
    await servers.nats.kill();
    await running.more(40);
    await servers.nats.start();
  }
  await running.stop();
  await letLeasesRunOut(pool);
  await untilWitnessed(pool);
  t.same([...running.statuses.keys()], [201]);
  await scene.assertConsistent(t, running.acknowledged);
});

t.test('every process ends cleanly on SIGTERM', async () => {
  for (const each of [...apis, ...workers]) await each.stop();
});
