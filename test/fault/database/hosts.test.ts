/** Several servers in DATABASE_URL: the one that takes writes is found, whichever it is by now. */

import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import { lockDataDir } from '../../../src/server/embedded/data-dir.js';
import { startPostgres } from '../../../src/server/embedded/postgres.js';
import { connectPool } from '../../../src/server/store/database/connect.js';
import { isConnectionLost } from '../../../src/server/store/database/database-errors.js';
import { startProxy } from '../../support/breaking/proxy.js';
import { acknowledgement, newCreation, send } from '../../support/calling/load.js';
import { setScene } from '../../support/fault-fixture.js';
import type { Acknowledged } from '../../support/judging/consistent.js';
import { findFreePort } from '../../support/servers/free-port.js';
import type { ServiceProcess } from '../../support/servers/installation.js';
import type { PrivateServer } from '../../support/servers/private-servers.js';
import { until } from '../../support/until.js';
import { untilWitnessed } from '../../support/wait-for-idle.js';

const SILENT = { debug: () => {}, warn: () => {}, error: () => {} };

/** The URL of one database on several ports of this machine, in this order. */
function several(url: string, ports: readonly (string | number)[], query = ''): string {
  const { username, password, pathname } = new URL(url);
  return `postgres://${username}:${password}@${ports.map((port) => `127.0.0.1:${port}`).join()}${pathname}${query}`;
}

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
  const target = () => ({ host: '127.0.0.1', port: Number(new URL(server.url).port) });
  const proxy = await startProxy(target());
  t.teardown(async () => {
    await proxy.close();
    await server.stop();
  });
  return {
    port: proxy.port,
    promote: async () => {
      await server.stop();
      await rm(signal);
      server = await startPostgres({ dataDir, log: SILENT });
      proxy.point(target());
    },
  };
}

t.test(
  'a standby is skipped until it is promoted, and its missing submissions are detected then',
  async (t) => {
    const scene = await setScene(t);
    const { installation, pool, servers, apiKey } = scene;
    const { postgres } = servers;
    await (await installation.startApi()).stop();
    await postgres.stop();
    const standby = await startStandby(t, postgres);
    await postgres.start();
    await until('the primary is back', async () => (await pool`SELECT 1`).length === 1);
    const ports = [await findFreePort(), standby.port, postgres.proxy.port];
    installation.env.DATABASE_URL = several(postgres.url, ports);
    const api = await installation.startApi();
    const worker = await installation.startWorker();
    const acknowledged: Acknowledged[] = [];
    for (let i = 0; i < 3; i++) {
      const creation = newCreation();
      acknowledged.push(acknowledgement(creation, await send(api.baseUrl, apiKey, creation)));
    }
    await untilWitnessed(pool);
    await scene.assertConsistent(t, acknowledged);
    t.equal((await fetch(`${api.opsUrl}/readyz/live`)).status, 200, 'that it lags behind is no fork');

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
  },
);

const frozen = ({ lines }: ServiceProcess) => lines.filter(({ msg }) => msg === 'the log is frozen');

t.test('when no host answers, the error is immediate', async (t) => {
  const url = several('postgres://u:p@h/d', [
    await findFreePort(),
    await findFreePort(),
    await findFreePort(),
  ]);
  const pool = connectPool({ url, name: 'test', max: 2, statementTimeoutMs: 1_000 });
  t.teardown(() => pool.end({ timeout: 1 }));
  for (const run of [() => pool`SELECT 1`, () => pool.begin((tx) => tx`SELECT 1`)]) {
    const error = await run().then(
      () => undefined,
      (failed: unknown) => failed,
    );
    t.ok(isConnectionLost(error), String(error));
  }
});
