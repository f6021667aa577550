/** A cluster of three nats-servers with JetStream, of which a test may kill some. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type JetStreamManager } from 'nats';
import type { Test } from 'tap';
import { EmbeddedError } from '../../../src/server/embedded/embedded-error.js';
import { NATS_PROGRAM } from '../../../src/server/embedded/nats-program.js';
import {
  type ServerLog,
  type ServerProcess,
  startServerProcess,
} from '../../../src/server/embedded/server-process.js';
import { natsServer } from '../foreign/nats-server.js';
import { until } from '../until.js';

export type NatsNode = {
  name: string;
  start(): Promise<void>;
  /** SIGKILL; waits for its end. */
  kill(): Promise<void>;
};

export type NatsCluster = {
  /** All three, as NATS_URL has it. */
  url: string;
  nodes: NatsNode[];
  withManager<T>(use: (manager: JetStreamManager) => Promise<T>): Promise<T>;
};

type Ports = { client: number; cluster: number };

const SILENT: ServerLog = { debug: () => {}, warn: () => {}, error: () => {} };
const SIZE = 3;

/** Starts it until the test ends; resolves when it has elected a leader. */
export async function startNatsCluster(test: Test): Promise<NatsCluster> {
  const dir = await mkdtemp(join(tmpdir(), 'attest-cluster-'));
  // Teardowns run in reverse: the servers end before their folder is removed.
  test.teardown(() => rm(dir, { recursive: true, force: true }));
  const program = await natsServer();
  const ports = await Promise.all(Array.from({ length: SIZE }, findPorts));
  const nodes: NatsNode[] = [];
  for (const i of ports.keys()) nodes.push(await makeNode(test, program, dir, ports, i));
  await Promise.all(nodes.map((node) => node.start()));
  const servers = ports.map(({ client }) => `127.0.0.1:${client}`);
  const withManager: NatsCluster['withManager'] = async (use) => {
    const connection = await connect({ servers });
    try {
      return await use(await connection.jetstreamManager());
    } finally {
      await connection.close();
    }
  };
  await until('the cluster has a leader', () => withManager(async () => true).catch(() => undefined));
  return { url: servers.map((server) => `nats://${server}`).join(','), nodes, withManager };
}

async function makeNode(
  test: Test,
  file: string,
  parent: string,
  ports: readonly Ports[],
  i: number,
): Promise<NatsNode> {
  const name = `node-${i}`;
  const cwd = join(parent, name);
  await mkdir(cwd);
  await writeFile(join(cwd, 'server.conf'), configuration(name, ports, i));
  let server: ServerProcess | undefined;
  const kill = async () => {
    if (server === undefined) return;
    process.kill(server.pid, 'SIGKILL');
    await server.exited;
    server = undefined;
  };
  test.teardown(kill);
  return {
    name,
    kill,
    start: async () => {
      server = await startServerProcess(
        { log: SILENT },
        {
          name: NATS_PROGRAM,
          file,
          args: ['--config', 'server.conf'],
          cwd,
          stopSteps: [{ signal: 'SIGKILL', waitMs: 10_000 }],
          levelOf: () => 'debug',
          isReady: (line) => line.includes('Server is ready'),
          explainFailure: (lines) => new EmbeddedError('start_failed', lines.slice(-3).join(' ')),
        },
      );
    },
  };
}

function configuration(name: string, ports: readonly Ports[], i: number): string {
  const routes = ports.filter((_, other) => other !== i).map(({ cluster }) => `nats://127.0.0.1:${cluster}`);
  return [
    `server_name: "${name}"`,
    `listen: "127.0.0.1:${ports[i]?.client}"`,
    'jetstream { store_dir: "." }',
    `cluster { name: "test", listen: "127.0.0.1:${ports[i]?.cluster}", routes: [${routes.join(', ')}] }`,
    '',
  ].join('\n');
}

/** Ports that are free now, and the same over a node's restarts. */
async function findPorts(): Promise<Ports> {
  const [client, cluster] = await Promise.all([findPort(), findPort()]);
  return { client, cluster };
}

async function findPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
