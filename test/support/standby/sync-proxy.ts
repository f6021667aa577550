/** HAProxy in front of Patroni's synchronous standby, with the configuration of docs/operating.md. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { HAPROXY } from '../foreign/patroni/haproxy.js';
import { findFreePort } from '../servers/free-port.js';
import type { PatroniNode } from './patroni-node.js';

/** Starts it until the test ends. Returns the host and port of the standby, which it looks for from then on. */
export async function startSyncProxy(
  test: Pick<Test, 'teardown'>,
  nodes: readonly PatroniNode[],
): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'attest-haproxy-'));
  const address = `127.0.0.1:${await findFreePort()}`;
  const file = join(dir, 'haproxy.cfg');
  await writeFile(file, configuration(address, nodes));
  const proxy = spawn(HAPROXY, ['-db', '-f', file], { stdio: 'ignore' });
  const exited = once(proxy, 'exit');
  test.teardown(async () => {
    proxy.kill('SIGKILL');
    await exited;
    await rm(dir, { recursive: true, force: true });
  });
  return address;
}

function configuration(address: string, nodes: readonly PatroniNode[]): string {
  const servers = nodes.map(
    ({ name, address, apiPort }) => `  server ${name} ${address} check port ${apiPort}`,
  );
  return `defaults
  mode tcp
  timeout connect 1s
  timeout check 1s
  timeout client 1h
  timeout server 1h
listen synchronous
  bind ${address}
  option httpchk GET /sync
  http-check expect status 200
  default-server inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
${servers.join('\n')}
`;
}
