/** A cluster of three nats-servers with JetStream, of which a test may kill some. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
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
import { findFreePort } from './free-port.js';

export type NatsNode = {
  name: string;
  /** The same over restarts. */
  port: number;
  /** Does nothing while it runs. */
  start(): Promise<void>;
  /** In an orderly way. */
  stop(): Promise<void>;
  /** SIGKILL; waits for its end. */
  kill(): Promise<void>;
  /** SIGSTOP or SIGCONT; nothing while it is down. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void;
  /** Deletes what JetStream has stored, while it is down. */
  forget(): Promise<void>;
};

export type NatsCluster = {
  /** All three, as NATS_URL has it. */
  url: string;
  nodes: NatsNode[];
  withManager<T>(use: (manager: JetStreamManager) => Promise<T>): Promise<T>;
};

export type NatsClusterOptions = {
  /** Where their data goes; a folder of its own by default. */
  dir?: string;
  /** Called when a node has ended that was neither stopped nor killed. */
  onCrash?: (node: NatsNode) => void;
};

type Ports = { client: number; cluster: number };

const SILENT: ServerLog = { debug: () => {}, warn: () => {}, error: () => {} };
const SIZE = 3;

/** Starts it until the test ends; resolves when it has elected a leader. */
export async function startNatsCluster(
  test: Pick<Test, 'teardown'>,
  { dir: wanted, onCrash = () => {} }: NatsClusterOptions = {},
): Promise<NatsCluster> {
  const dir = wanted ?? (await mkdtemp(join(tmpdir(), 'attest-cluster-')));
  // Teardowns run in reverse: the servers end before their folder is removed.
  if (wanted === undefined) test.teardown(() => rm(dir, { recursive: true, force: true }));
  const program = await natsServer();
  const ports = await Promise.all(Array.from({ length: SIZE }, findPorts));
  const nodes: NatsNode[] = [];
  for (const i of ports.keys()) nodes.push(await makeNode(test, { program, dir, ports, onCrash }, i));
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

type Cluster = { program: string; dir: string; ports: readonly Ports[]; onCrash: (node: NatsNode) => void };

async function makeNode(
  test: Pick<Test, 'teardown'>,
  { program, dir, ports, onCrash }: Cluster,
  i: number,
): Promise<NatsNode> {
  const name = `node-${i}`;
  const cwd = join(dir, name);
  await mkdir(cwd);
  await writeFile(join(cwd, 'server.conf'), configuration(name, ports, i));
  let server: ServerProcess | undefined;
  const end = async (how: (running: ServerProcess) => unknown) => {
    const running = server;
    server = undefined;
    if (running === undefined) return;
    await how(running);
    await running.exited;
  };
  const node: NatsNode = {
    name,
    port: ports[i]!.client,
    start: async () => {
      if (server !== undefined) return;
      const started = await startServer(program, cwd);
      server = started;
      void started.exited.then(() => {
        if (server !== started) return;
        server = undefined;
        onCrash(node);
      });
    },
    stop: () => end((running) => running.stop()),
    kill: () => end((running) => process.kill(running.pid, 'SIGKILL')),
    signal: (signal) => {
      if (server !== undefined) process.kill(server.pid, signal);
    },
    forget: () => rm(join(cwd, 'jetstream'), { recursive: true, force: true }),
  };
  test.teardown(node.kill);
  return node;
}

function startServer(file: string, cwd: string): Promise<ServerProcess> {
  return startServerProcess(
    { log: SILENT },
    {
      name: NATS_PROGRAM,
      file,
      args: ['--config', 'server.conf'],
      cwd,
      stopSteps: [
        { signal: 'SIGTERM', waitMs: 10_000 },
        { signal: 'SIGKILL', waitMs: 10_000 },
      ],
      levelOf: () => 'debug',
      isReady: (line) => line.includes('Server is ready'),
      explainFailure: (lines) => new EmbeddedError('start_failed', lines.slice(-3).join(' ')),
    },
  );
}

/** Clients learn no addresses: each has those of its setting, which may lead through proxies. */
function configuration(name: string, ports: readonly Ports[], i: number): string {
  const routes = ports.filter((_, other) => other !== i).map(({ cluster }) => `nats://127.0.0.1:${cluster}`);
  return [
    `server_name: "${name}"`,
    `listen: "127.0.0.1:${ports[i]?.client}"`,
    'jetstream { store_dir: "." }',
    `cluster { name: "test", no_advertise: true, listen: "127.0.0.1:${ports[i]?.cluster}", routes: [${routes.join(', ')}] }`,
    '',
  ].join('\n');
}

/** Ports that are free now, and the same over a node's restarts. */
async function findPorts(): Promise<Ports> {
  const [client, cluster] = await Promise.all([findFreePort(), findFreePort()]);
  return { client, cluster };
}
