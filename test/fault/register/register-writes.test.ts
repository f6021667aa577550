/** The register cannot be written, or who writes it stands still: operators see it, and it goes on by itself. */
import t, { type Test } from 'tap';
import { entryPlace, openFolder } from '../../support/breaking/register.js';
import { MAY_MOUNT, mountSmallDisk } from '../../support/breaking/small-disk.js';
import { commitOf, statement } from '../../support/breaking/statement-matchers.js';
import { acknowledgement, newCreation, send } from '../../support/calling/load.js';
import { type Scene, setScene } from '../../support/fault-fixture.js';
import type { Acknowledged } from '../../support/judging/consistent.js';
import type { ServiceProcess } from '../../support/servers/installation.js';
import { until } from '../../support/until.js';
import { untilWitnessed } from '../../support/wait-for-idle.js';

const ORIGIN = 'live.log.example.com';
/** Well below a minute, for which a worker's statements may take. */
const SOON_MS = 30_000;

async function submit({ apiKey }: Scene, api: ServiceProcess, count: number): Promise<Acknowledged[]> {
  const done: Acknowledged[] = [];
  for (let i = 0; i < count; i++) {
    const creation = newCreation();
    // While the database is cut off, creates are rejected.
    await until('a submission is acknowledged', async () => {
      const answer = await send(api.baseUrl, apiKey, creation);
      if (answer.status === 201) done.push(acknowledgement(creation, answer));
      return answer.status === 201;
    });
  }
  return done;
}

/** The value of a gauge of the live log, or undefined. */
async function gauge({ opsUrl }: ServiceProcess, name: string): Promise<number | undefined> {
  const text = await (await fetch(`${opsUrl}/metrics`)).text();
  const line = text.split('\n').find((each) => each.startsWith(`${name}{log="${ORIGIN}"}`));
  return line === undefined ? undefined : Number(line.split(' ')[1]);
}

async function readiness({ opsUrl }: ServiceProcess): Promise<{ status: number; text: string }> {
  const answer = await fetch(`${opsUrl}/readyz/live`);
  return { status: answer.status, text: await answer.text() };
}

t.test('a register that cannot be written is seen by gauges and readiness, which name it', async (t) => {
  const folder = await openFolder(t, ORIGIN);
  const scene = await setScene(t, { env: { CHECKPOINT_REGISTER: folder.path } });
  const api = await scene.installation.startApi();
  const worker = await scene.installation.startWorker();
  const acknowledged = await submit(scene, api, 2);
  await untilWitnessed(scene.pool);
  t.equal(await gauge(worker, 'attest_batches_unpublished'), 0);
  t.ok((await gauge(worker, 'attest_log_last_published_seconds'))! >= 0);
  t.match(await readiness(worker), { status: 200 });

  await folder.setWritable(false);
  acknowledged.push(...(await submit(scene, api, 2)));
  await until('the worker says so', async () => (await readiness(worker)).status === 503);
  t.match((await readiness(worker)).text, `register ${entryPlace(folder.path, ORIGIN)} cannot be written: E`);
  t.ok((await gauge(worker, 'attest_batches_unpublished'))! > 0);
  t.ok((await gauge(worker, 'attest_batches_unsettled'))! > 0);
  const age = await gauge(worker, 'attest_batches_oldest_unsettled_seconds');
  const published = await gauge(worker, 'attest_log_last_published_seconds');
  await until('ages grow', async () => {
    const [older, later] = [
      await gauge(worker, 'attest_batches_oldest_unsettled_seconds'),
      await gauge(worker, 'attest_log_last_published_seconds'),
    ];
    return older! > age! && later! > published!;
  });

  await folder.setWritable(true);
  await untilWitnessed(scene.pool);
  await until('the worker is ready', async () => (await readiness(worker)).status === 200);
  t.equal(await gauge(worker, 'attest_batches_unpublished'), 0);
  t.equal(await gauge(worker, 'attest_batches_unsettled'), 0);
  await scene.assertConsistent(t, acknowledged);
});

async function withoutSpace(t: Test): Promise<void> {
  const disk = await mountSmallDisk(t, 1);
  const scene = await setScene(t, { env: { CHECKPOINT_REGISTER: disk.path } });
  const api = await scene.installation.startApi();
  await scene.installation.startWorker();
  const acknowledged = await submit(scene, api, 1);
  await untilWitnessed(scene.pool);
  disk.fill();
  acknowledged.push(...(await submit(scene, api, 2)));
  await untilWitnessed(scene.pool);
  await scene.assertConsistent(t, acknowledged);
}

if (MAY_MOUNT) t.test('a register without space continues: an entry replaces another', withoutSpace);

const POINTS = {
  'a batch is sealed': statement('INSERT INTO batch '),
  'it is compared with the register': commitOf('registered_at AS "registeredAt"'),
  'a batch is marked as published': statement('SET registered_at'),
};

for (const [when, matching] of Object.entries(POINTS)) {
  t.test(`a worker that is stopped while ${when} holds up no other for long`, async (t) => {
    const scene = await setScene(t);
    const { installation, pool, servers } = scene;
    const api = await installation.startApi();
    const acknowledged = await submit(scene, api, 3);
    const held = servers.postgres.proxy.holdNext('before the answer arrives', matching);
    const stopped = await installation.startWorker();
    await held;
    stopped.standStill();
    const other = await installation.startWorker();
    await untilWitnessed(pool, SOON_MS);
    t.match(await readiness(other), { status: 200 });
    acknowledged.push(...(await submit(scene, api, 3)));
    await untilWitnessed(pool, SOON_MS);
    stopped.goOn();
    servers.postgres.proxy.cut();
    acknowledged.push(...(await submit(scene, api, 3)));
    await untilWitnessed(pool);
    await until('both are ready', async () =>
      (await Promise.all([readiness(stopped), readiness(other)])).every(({ status }) => status === 200),
    );
    await scene.assertConsistent(t, acknowledged);
  });
}
