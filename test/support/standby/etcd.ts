import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import type { Test } from 'tap';
import type { Target } from '../breaking/proxy.js';
import { ETCD } from '../foreign/patroni/etcd.js';
import { findFreePort } from '../servers/free-port.js';
import { until } from '../until.js';

/** Starts an etcd of one member over a new folder until the test ends. Returns its address for clients. */
export async function startEtcd(test: Pick<Test, 'teardown'>, dir: string): Promise<Target> {
  await mkdir(dir);
  const [port, peers] = [await findFreePort(), await findFreePort()];
  const [url, peerUrl] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${peers}`];
  const args = [
    ...['--name', 'one', '--data-dir', dir],
    ...['--listen-client-urls', url, '--advertise-client-urls', url],
    ...['--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl],
    ...['--initial-cluster', `one=${peerUrl}`],
  ];
  const etcd = spawn(ETCD, args, { stdio: 'ignore' });
  const exited = once(etcd, 'exit');
  test.teardown(async () => {
    etcd.kill('SIGKILL');
    await exited;
  });
  await until('etcd is healthy', async () => (await fetch(`${url}/health`)).ok);
  return { host: '127.0.0.1', port };
}
