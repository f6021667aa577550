/** A Postgres and a nats-server of a test's own, which it may kill, stop, start again, and set back. */
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { connect, type JetStreamManager } from 'nats';
import type { Test } from 'tap';
import { connectPool } from '../../../src/server/database/connect.js';
import { migrate } from '../../../src/server/database/migrate.js';
import { type DataDir, lockDataDir } from '../../../src/server/embedded/data-dir.js';
import { startNats } from '../../../src/server/embedded/nats.js';
import { type LocalServer, startPostgres } from '../../../src/server/embedded/postgres.js';
import type { ServerLog } from '../../../src/server/embedded/server-process.js';
import { startProxy, type TcpProxy } from '../breaking/proxy.js';
import '../foreign/nats-server.js';
import { copyClusterTemplate } from './cluster-template.js';
import { DATA_DIR_PREFIX, dataFolder } from './data-folder.js';

/** A server whose address outlives it. */
export type PrivateServer = {
  /** With user and password; stays the same over restarts. */
  url: string;
  /** Where its data is. */
  dir: string;
  /** In front of it, always. */
  proxy: TcpProxy;
  pid(): number;
  start(): Promise<void>;
  stop(): Promise<void>;
  /** SIGKILL; waits for the end of the process. */
  kill(): Promise<void>;
};

/** Directories for the servers' data. */
export type ServerDirs = { postgres?: string; nats?: string };

export type PrivateServers = { postgres: PrivateServer; nats: PrivateNats };

export type PrivateNats = PrivateServer & {
  /** Works on JetStream, past the service. */
  withManager<T>(use: (manager: JetStreamManager) => Promise<T>): Promise<T>;
  /** Empties the stream of jobs, so that what a killed worker had in hand need not run out first. */
  forget(): Promise<void>;
};

const SILENT: ServerLog = { debug: () => {}, warn: () => {}, error: () => {} };
const PASSWORD = 'private';

/**
 * Starts both, the database migrated, until the test ends.
 *
 * @param dirs where their data goes; new directories when left out
 */
export async function startPrivateServers(test: Test, dirs: ServerDirs = {}): Promise<PrivateServers> {
  const dataDir = await openDataDir(test, dirs.postgres);
  if (dirs.postgres === undefined) await copyClusterTemplate(dataDir.path);
  const natsDir = dirs.nats === dirs.postgres ? dataDir : await openDataDir(test, dirs.nats);
  const postgres = await privateServer(test, dataDir, 'postgres', startPostgres);
  const nats = await privateServer(test, natsDir, 'nats', (options) =>
    startNats({ ...options, randomPassword: () => PASSWORD }),
  );
  const withManager: PrivateNats['withManager'] = (use) => useManager(nats.url, use);
  const forget = async () => {
    await withManager((manager) => manager.streams.purge('JOBS'));
  };
  const pool = connectPool({ url: postgres.url, name: 'migrate', max: 1, statementTimeoutMs: 60_000 });
  await migrate(pool).finally(() => pool.end());
  return { postgres, nats: { ...nats, withManager, forget } };
}

/**
 * Starts a Postgres alone until the test ends.
 *
 * @param dir a data directory that may hold a cluster
 */
export async function startPrivatePostgres(test: Test, dir: string): Promise<PrivateServer> {
  return privateServer(test, await openDataDir(test, dir), 'postgres', startPostgres);
}

async function openDataDir(test: Test, dir: string | undefined): Promise<DataDir> {
  const path = dir ?? (await mkdtemp(join(dataFolder(), DATA_DIR_PREFIX)));
  if (dir === undefined) test.teardown(() => rm(path, { recursive: true, force: true }));
  const dataDir = await lockDataDir({ path });
  test.teardown(() => dataDir.release());
  return dataDir;
}

type Start = (options: { dataDir: DataDir; log: ServerLog }) => Promise<LocalServer>;

async function privateServer(
  test: Test,
  dataDir: DataDir,
  name: string,
  start: Start,
): Promise<PrivateServer> {
  const options = { dataDir, log: SILENT };
  let server = await start(options);
  const proxy = await startProxy(targetOf(server.url));
  test.teardown(async () => {
    await proxy.close();
    await server.stop();
  });
  const url = new URL(server.url);
  url.port = String(proxy.port);
  return {
    url: url.href,
    dir: join(dataDir.path, name),
    proxy,
    pid: () => server.pid,
    start: async () => {
      server = await start(options);
      proxy.point(targetOf(server.url));
    },
    stop: () => server.stop(),
    kill: async () => {
      process.kill(server.pid, 'SIGKILL');
      await server.exited;
    },
  };
}

async function useManager<T>(url: string, use: (manager: JetStreamManager) => Promise<T>): Promise<T> {
  const { host, username, password } = new URL(url);
  const connection = await connect({ servers: host, user: username, pass: password });
  try {
    return await use(await connection.jetstreamManager());
  } finally {
    await connection.close();
  }
}

function targetOf(url: string): { host: string; port: number } {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
}

/** Copies a stopped server's data beside it. @returns what puts it back, while the server is stopped again */
export async function backUp(server: PrivateServer): Promise<() => Promise<void>> {
  const copy = `${server.dir}.backup`;
  await cp(server.dir, copy, { recursive: true, preserveTimestamps: true });
  return async () => {
    await rm(server.dir, { recursive: true });
    await cp(copy, server.dir, { recursive: true, preserveTimestamps: true });
  };
}
