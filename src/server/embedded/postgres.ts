import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import type { DataDir } from './data-dir.js';
import { EmbeddedError } from './embedded-error.js';
import { getPostgresBinaries } from './postgres-binaries.js';
import {
  type ClusterOptions,
  dataDirArgument,
  openCluster,
  ROLE,
  unfinishedDir,
} from './postgres-cluster.js';
import { explainPostgresFailure } from './postgres-failure.js';
import { findPostgresUser } from './postgres-user.js';
import { type ServerLog, type ServerProcess, startServerProcess } from './server-process.js';
import { type StopSteps, stopLeftovers } from './stop-process.js';

/** SIGINT ends sessions and writes a checkpoint; SIGQUIT leaves recovery to the next start and loses nothing either. */
const STOP_STEPS: StopSteps = [
  { signal: 'SIGINT', waitMs: 60_000 },
  { signal: 'SIGQUIT', waitMs: 10_000 },
  { signal: 'SIGKILL', waitMs: 10_000 },
];

const PORT_ATTEMPTS = 5;

const MAX_CONNECTIONS = 200;

const SETTINGS: Record<string, string> = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  max_wal_size: '2GB',
  log_destination: 'stderr',
  logging_collector: 'off',
  log_line_prefix: '',
  log_checkpoints: 'off',
  lc_messages: 'C',
  timezone: 'UTC',
};

const MIB = 1024 * 1024;
/** What Postgres takes by itself. */
const LEAST_BUFFERS_MIB = 128;
/**
 * Holds the rows and tiles of the reads of a while, and of 10 million leaves all that every proof reads beside its own: with
 * rows read before, one with its tiles takes Postgres 40 µs, with 128 MB 52. Memory is taken as pages are read.
 */
const MOST_BUFFERS_MIB = 1024;

/** A quarter of the memory that this process may use, within the bounds above. */
function sharedBuffers(): string {
  const limit = process.constrainedMemory();
  const bytes = limit > 0 ? Math.min(limit, totalmem()) : totalmem();
  const quarterMib = Math.floor(bytes / 4 / MIB);
  return `${Math.max(LEAST_BUFFERS_MIB, Math.min(quarterMib, MOST_BUFFERS_MIB))}MB`;
}

interface PostgresOptions {
  /** Locked by the caller, who releases it after `stop`. */
  dataDir: DataDir;
  /** Where programs may be copied to; a usual place when left out. */
  cacheDir?: string;
  /** 0 or left out: a free one. */
  port?: number;
  log: ServerLog;
  /** 200 by default. */
  maxConnections?: number;
  /** A new password of URL-safe characters. */
  randomPassword?: () => string;
}

export interface LocalServer extends ServerProcess {
  /** With user and password: a secret. */
  url: string;
}

/**
 * Starts PostgreSQL over `<data dir>/postgres`, creating the cluster at the first start, on 127.0.0.1 with a password.
 * A server that a killed process left running there is stopped first. Throws EmbeddedError when it cannot be started.
 */
export async function startPostgres(options: PostgresOptions): Promise<LocalServer> {
  const { dataDir, log, randomPassword = () => randomBytes(24).toString('hex') } = options;
  const dir = join(dataDir.path, 'postgres');
  const user = await findPostgresUser();
  const binaries = await getPostgresBinaries({ user, cacheDir: options.cacheDir });
  const passwordFile = join(dataDir.path, 'postgres.password');
  const cluster = { binaries, user, dir, passwordFile, randomPassword };
  await stopLeftovers({ log }, dir, 'postgres', STOP_STEPS);
  await clearUnfinished({ log }, dir);
  const password = await openCluster(cluster);
  const settings = {
    ...SETTINGS,
    shared_buffers: sharedBuffers(),
    max_connections: String(options.maxConnections ?? MAX_CONNECTIONS),
  };
  const { port, server } = await startOnFreePort({ log }, { ...cluster, settings }, options.port ?? 0);
  return { ...server, url: `postgres://${ROLE}:${password}@127.0.0.1:${port}/${ROLE}` };
}

async function clearUnfinished({ log }: { log: ServerLog }, dir: string): Promise<void> {
  const unfinished = unfinishedDir(dir);
  for (const program of ['initdb', 'postgres']) {
    await stopLeftovers({ log }, unfinished, program, [{ signal: 'SIGKILL', waitMs: 10_000 }]);
  }
  await rm(unfinished, { recursive: true, force: true });
}

type StartOptions = ClusterOptions & { settings: Record<string, string> };

/** Postgres cannot choose a port itself, so another process may bind a free one before Postgres does. */
async function startOnFreePort({ log }: { log: ServerLog }, cluster: StartOptions, wanted: number) {
  for (let attempt = 1; ; attempt++) {
    const port = wanted === 0 ? await findFreePort() : wanted;
    try {
      return { port, server: await startOnPort({ log }, cluster, port) };
    } catch (error) {
      const isTaken = error instanceof EmbeddedError && error.code === 'port_taken';
      if (!isTaken || wanted !== 0 || attempt === PORT_ATTEMPTS) throw error;
    }
  }
}

function startOnPort(
  { log }: { log: ServerLog },
  cluster: StartOptions,
  port: number,
): Promise<ServerProcess> {
  const settings = Object.entries({ ...cluster.settings, port: String(port) });
  return startServerProcess(
    { log },
    {
      name: 'postgres',
      file: cluster.binaries.postgres,
      args: [
        '-D',
        dataDirArgument(cluster),
        ...settings.flatMap(([name, value]) => ['-c', `${name}=${value}`]),
      ],
      cwd: cluster.dir,
      user: cluster.user,
      stopSteps: STOP_STEPS,
      levelOf,
      isReady: (line) => /database system is ready to accept (read-only )?connections/.test(line),
      explainFailure: (lines) => explainPostgresFailure(cluster.dir, lines),
    },
  );
}

/** An ERROR is the answer to a statement; its sender gets it as well. */
function levelOf(line: string): keyof ServerLog {
  if (/^(FATAL|PANIC):/.test(line)) return 'error';
  return line.startsWith('WARNING:') ? 'warn' : 'debug';
}

async function findFreePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}
