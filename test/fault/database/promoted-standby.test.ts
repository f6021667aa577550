/** Several servers behind one name: what a promoted standby lacks is detected. */
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import { lockDataDir } from '../../../src/server/embedded/data-dir.js';
import { startPostgres } from '../../../src/server/embedded/postgres.js';
import { acknowledgement, newCreation, send } from '../../support/calling/load.js';
import { setScene } from '../../support/fault-fixture.js';
import type { Acknowledged } from '../../support/judging/consistent.js';
import type { ServiceProcess } from '../../support/servers/installation.js';
import type { PrivateServer } from '../../support/servers/private-servers.js';
import { until } from '../../support/until.js';
import { untilWitnessed } from '../../support/wait-for-idle.js';

const SILENT = { debug: () => {}, warn: () => {}, error: () => {} };

/** A hot standby from a copy of a stopped primary's data, which lags behind from then on, until it is promoted. */
async function startStandby(t: Test, primary: PrivateServer) {
  const path = await mkdtemp(join(tmpdir(), 'attest-standby-'));
  t.teardown(() => rm(path, { recursive: true, force: true }));
  await cp(dirname(primary.dir), path, { recursive: true, preserveTimestamps: true });
  const signal = join(path, 'postgres', 'standby.signal');
  await writeFile(signal, '');
  const dataDir = await lockDataDir({ path });
  t.teardown(() => dataDir.release());
  let server = await startPostgres({ dataDir, log: SILENT });
  t.teardown(() => server.stop());
  return {
    promote: async () => {
      await server.stop();
      await rm(signal);
      server = await startPostgres({ dataDir, log: SILENT });
      primary.proxy.point({ host: '127.0.0.1', port: Number(new URL(server.url).port) });
    },
  };
}

t.test('when the name of the database leads to a promoted standby, what it lacks is detected', async (t) => {
  const scene = await setScene(t);
  const { installation, pool, servers, apiKey } = scene;
  const { postgres } = servers;
  await (await installation.startApi()).stop();
  await postgres.stop();
  const standby = await startStandby(t, postgres);
  await postgres.start();
  await until('the primary is back', async () => (await pool`SELECT 1`).length === 1);
  const api = await installation.startApi();
  const worker = await installation.startWorker();
  const acknowledged: Acknowledged[] = [];
  for (let i = 0; i < 3; i++) {
    const creation = newCreation();
    acknowledged.push(acknowledgement(creation, await send(api.baseUrl, apiKey, creation)));
  }
  await untilWitnessed(pool);
  await scene.assertConsistent(t, acknowledged);
  await t.test('without a primary creations are rejected', async (t) => {
    await postgres.stop();
    t.equal((await send(api.baseUrl, apiKey, newCreation())).status, 503);
    t.same(frozen(api), []);
  });
  await standby.promote();
  await until('the log is frozen', () => frozen(api).length > 0);
  t.match(
    frozen(api)[0]?.reason,
    /^the register has a checkpoint of size 3, the database has leaves up to 0 and batches up to 0/,
  );
  await worker.kill();
  await api.kill();
});

const frozen = ({ lines }: ServiceProcess) => lines.filter(({ msg }) => msg === 'the log is frozen');
