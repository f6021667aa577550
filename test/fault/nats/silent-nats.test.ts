/** A NATS that accepts connections and says nothing: it holds up no process and costs no descriptors. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import t, { type Test } from 'tap';
import { createLogger } from '../../../src/server/core/logger.js';
import { createJobSender } from '../../../src/server/jobs/job-sender.js';
import { startProxy } from '../../support/breaking/proxy.js';
import { setScene } from '../../support/fault-fixture.js';
import { testNatsPrefix, testNatsUrl } from '../../support/servers/shared-nats.js';
import { until } from '../../support/until.js';

type SilentServer = { url: string; port: number; accepted: number; open: Set<Socket> };

async function startSilentServer(test: Test): Promise<SilentServer> {
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    silent.accepted++;
    open.add(socket);
    socket.resume();
    socket.on('error', () => {}).on('close', () => open.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const silent: SilentServer = { url: `nats://127.0.0.1:${port}`, port, accepted: 0, open };
  test.teardown(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  return silent;
}

const options = { name: 'a test', replicas: 1, stages: [], log: createLogger({ level: 'silent' }) };

t.test('an attempt that is given up leaves no socket open, and closing ends the one under way', async (t) => {
  const silent = await startSilentServer(t);
  const sender = createJobSender({ ...options, url: silent.url, prefix: testNatsPrefix(t) });
  await until('it has tried again', () => silent.accepted > 1);
  t.equal(silent.open.size, 1);
  await sender.close();
  await until('nothing is left', () => silent.open.size === 0);
});

t.test('the same after a connection was lost', async (t) => {
  const silent = await startSilentServer(t);
  const nats = new URL(await testNatsUrl());
  const proxy = await startProxy({ host: nats.hostname, port: Number(nats.port) });
  t.teardown(() => proxy.close());
  nats.port = String(proxy.port);
  const sender = createJobSender({ ...options, url: nats.href, prefix: testNatsPrefix(t) });
  await until('it works', () => sender.queue() !== undefined);
  proxy.point({ host: '127.0.0.1', port: silent.port });
  await until('it has tried again', () => silent.accepted > 1);
  t.equal(silent.open.size, 1);
  t.equal(sender.connected(), undefined);
  await sender.close();
  await until('nothing is left', () => silent.open.size === 0);
});

t.test('processes end cleanly while their first connection stalls', async (t) => {
  const silent = await startSilentServer(t);
  const { installation } = await setScene(t);
  installation.env.NATS_URL = silent.url;
  const processes = await Promise.all([installation.startApi(), installation.startWorker()]);
  await until('both have tried', () => silent.accepted >= 2);
  await Promise.all(processes.map((process) => process.stop()));
  t.equal(silent.open.size, 0);
});

t.test('processes end cleanly while their nats-server is suspended', async (t) => {
  const { installation, servers } = await setScene(t);
  const processes = await Promise.all([installation.startApi(), installation.startWorker()]);
  await until('the stream is there', () =>
    servers.nats.withManager((manager) => manager.consumers.info('JOBS', 'seal')),
  );
  process.kill(servers.nats.pid(), 'SIGSTOP');
  t.teardown(() => process.kill(servers.nats.pid(), 'SIGCONT'));
  await Promise.all(processes.map((process) => process.stop()));
});
