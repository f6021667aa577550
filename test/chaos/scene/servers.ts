/** The Postgres of a campaign, behind a link for each process, killed and started again at will. */
import { readFileSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { ShutdownHooks } from '../../../src/server/core/shutdown.js';
import { lockDataDir } from '../../../src/server/embedded/data-dir.js';
import { type LocalServer, startPostgres } from '../../../src/server/embedded/postgres.js';
import { type Link, startLink } from '../../support/breaking/link.js';
import type { Target } from '../../support/breaking/proxy.js';
import { STANDBY_NAME } from '../../support/standby/replication.js';

export type ServerName = 'postgres' | 'nats';

export type Server = {
  name: ServerName;
  /** Where its data is. */
  dataDir: string;
  /** Its address past every link; another one after a restart. */
  url(): string;
  /** By the process that uses it; and what replicates it. */
  links: Map<string, Link>;
  /** Its address as that process sees it, which stays the same. */
  urlFor(user: string): string;
  /** SIGKILL; it stays down until `start`. */
  kill(): Promise<void>;
  /** In an orderly way; it stays down until `start`. */
  stop(): Promise<void>;
  /** Tries until it runs. Nothing is done when it does. */
  start(): Promise<void>;
  /** SIGSTOP or SIGCONT to the server and its children. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void;
  /** Postgres only: settings on top of those it was started with and `lasting`, in force at once, and at the next start. */
  configure(settings: string): Promise<void>;
  /** Postgres only: settings that `configure` leaves in force. */
  lasting: string;
  /** Deletes its data, while it is down. */
  forget(): Promise<void>;
  /** How often it ended without being told to. */
  crashes(): number;
};

const SILENT = { debug: () => {}, warn: () => {}, error: () => {} };
const RETRY_MS = 500;
const START_ATTEMPTS = 120;

/** @param users names of the processes that get a link each */
export async function openPostgres(
  dir: string,
  users: readonly string[],
  hooks: ShutdownHooks,
): Promise<Server> {
  const dataDir = await lockDataDir({ path: dir });
  hooks.add(() => dataDir.release());
  const options = { dataDir, log: SILENT };
  const launch = () => startPostgres(options);
  const state: State = {
    launch,
    server: undefined,
    wanted: true,
    closed: false,
    crashes: 0,
    links: new Map(),
  };
  hooks.add(async () => {
    state.closed = true;
    state.wanted = false;
    await state.starting?.catch(() => {});
    await state.server?.stop();
  });
  await start(state);
  for (const user of users) {
    const link = await startLink(targetOf(state.server!.url));
    hooks.add(link.close);
    state.links.set(user, link);
  }
  const server: Server = {
    name: 'postgres',
    dataDir: dataDir.path,
    lasting: '',
    url: () => state.server!.url,
    links: state.links,
    urlFor: (user) => {
      const url = new URL(state.server!.url);
      url.port = String(state.links.get(user)!.port);
      return url.href;
    },
    kill: () => down(state, async (server) => void process.kill(server.pid, 'SIGKILL')),
    stop: () => {
      // An orderly stop waits for a standby that is connected.
      state.links.get(STANDBY_NAME)?.cut('reset');
      return down(state, (server) => server.stop());
    },
    start: () => start(state),
    signal: (signal) => signalAll(state.server?.pid, signal),
    configure: async (settings) => {
      await writeFile(join(dataDir.path, 'postgres', 'postgresql.auto.conf'), server.lasting + settings);
      if (state.up) process.kill(state.server!.pid, 'SIGHUP');
    },
    forget: () => rm(join(dataDir.path, 'postgres'), { recursive: true, force: true }),
    crashes: () => state.crashes,
  };
  return server;
}

type State = {
  launch: () => Promise<LocalServer>;
  server: LocalServer | undefined;
  up?: boolean;
  /** Whether it is to run. */
  wanted: boolean;
  /** It is not to run again, whoever asks. */
  closed: boolean;
  starting?: Promise<void> | undefined;
  crashes: number;
  links: Map<string, Link>;
};

function start(state: State): Promise<void> {
  if (state.closed) return Promise.resolve();
  state.wanted = true;
  if (state.up) return Promise.resolve();
  state.starting ??= tryToStart(state).finally(() => {
    state.starting = undefined;
  });
  return state.starting;
}

async function tryToStart(state: State): Promise<void> {
  for (let attempt = 1; state.wanted; attempt++) {
    try {
      const server = await state.launch();
      state.server = server;
      state.up = true;
      for (const link of state.links.values()) link.point(targetOf(server.url));
      void server.exited.then(() => {
        if (state.server !== server) return;
        state.up = false;
        if (!state.wanted) return;
        // A disk without room, for one: whoever looks after the server starts it again.
        state.crashes++;
        start(state).catch(() => {});
      });
      return;
    } catch (error) {
      if (attempt === START_ATTEMPTS) throw error;
      await delay(RETRY_MS);
    }
  }
}

async function down(state: State, end: (server: LocalServer) => Promise<void>): Promise<void> {
  state.wanted = false;
  await state.starting?.catch(() => {});
  if (!state.up || state.server === undefined) return;
  await end(state.server);
  await state.server.exited;
}

function signalAll(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  for (const each of [pid, ...childrenOf(pid)]) {
    try {
      process.kill(each, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

function targetOf(url: string): Target {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
}
