import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type DataDir, lockDataDir } from '../../../src/server/embedded/data-dir.js';
import { EmbeddedError } from '../../../src/server/embedded/embedded-error.js';
import { startNats } from '../../../src/server/embedded/nats.js';
import { startPostgres } from '../../../src/server/embedded/postgres.js';
import type { ServerLog } from '../../../src/server/embedded/server-process.js';
import { stopLeftovers } from '../../../src/server/embedded/stop-process.js';
import { copyClusterTemplate } from './cluster-template.js';
import { DATA_DIR_PREFIX, dataFolder, MEMORY } from './data-folder.js';

export interface LocalServers {
  databaseUrl: string;
  /** Empty where there is no nats-server. */
  natsUrl: string;
  postgresPid: number;
  /** 0 where there is none. */
  natsPid: number;
  /** Stops both and removes their data. */
  stop(): Promise<void>;
}

/** Four test processes have up to ten apps each, and an app some twenty connections when it is busy. */
const MAX_CONNECTIONS = 1_000;

const SILENT: ServerLog = { debug: () => {}, warn: () => {}, error: () => {} };

/** Starts a Postgres and, where it can be had, a nats-server over a new directory: in memory where that is large. */
export async function startLocalServers(folder = dataFolder()): Promise<LocalServers> {
  const dataDir = await lockDataDir({ path: await mkdtemp(join(folder, DATA_DIR_PREFIX)) });
  await copyClusterTemplate(dataDir.path);
  const options = { dataDir, log: SILENT };
  const started = await Promise.allSettled([
    startPostgres({ ...options, maxConnections: MAX_CONNECTIONS }),
    startNats(options).catch(unlessLacking),
  ]);
  const running = started.map((result) => (result.status === 'fulfilled' ? result.value : undefined));
  const servers = running.filter((server) => server !== undefined);
  const stop = async () => {
    await Promise.all(servers.map((server) => server.stop()));
    await dataDir.release();
    await rm(dataDir.path, { recursive: true });
  };
  const failed = started.find((result) => result.status === 'rejected');
  if (failed !== undefined) {
    await stop();
    throw failed.reason;
  }
  for (const server of servers) {
    void server.exited.then((exit) => {
      if (!exit.expected) console.error('# a local server died:', exit);
    });
  }
  const [postgres, nats] = running;
  return {
    databaseUrl: postgres!.url,
    natsUrl: nats?.url ?? '',
    postgresPid: postgres!.pid,
    natsPid: nats?.pid ?? 0,
    stop,
  };
}

function unlessLacking(error: unknown): undefined {
  if (!(error instanceof EmbeddedError && error.code === 'not_installed')) throw error;
}

/** Stops servers and removes directories that killed runs left behind. */
export async function clearAbandoned(): Promise<void> {
  const found = [MEMORY, tmpdir()].map(async (folder) => {
    const names = await readdir(folder).catch(() => []);
    return names.map((name) => ({ entry: name, path: join(folder, name) }));
  });
  for (const { entry, path } of (await Promise.all(found)).flat()) {
    if (!entry.startsWith(DATA_DIR_PREFIX) || (await isNewOrForeign(path))) continue;
    const dataDir = await lockDataDir({ path }).catch(() => undefined);
    if (dataDir !== undefined) await clear(dataDir);
  }
}

/** A new one may be between being made and being locked. */
async function isNewOrForeign(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found?.uid !== process.geteuid?.() || Date.now() - Number(found?.mtimeMs) < 60_000;
}

async function clear(dataDir: DataDir): Promise<void> {
  const steps = [{ signal: 'SIGKILL', waitMs: 10_000 }] as const;
  await stopLeftovers({ log: SILENT }, join(dataDir.path, 'postgres'), 'postgres', steps);
  await stopLeftovers({ log: SILENT }, join(dataDir.path, 'nats'), 'nats-server', steps);
  await dataDir.release();
  await rm(dataDir.path, { recursive: true, force: true });
}
