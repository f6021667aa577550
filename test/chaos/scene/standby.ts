/** The synchronous standby of a campaign's Postgres: without it nothing is committed, and it can take over. */
import { execFile } from 'node:child_process';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { ShutdownHooks } from '../../../src/server/core/shutdown.js';
import { type DataDir, lockDataDir } from '../../../src/server/embedded/data-dir.js';
import { type LocalServer, startPostgres } from '../../../src/server/embedded/postgres.js';
import { type Link, startLink } from '../../support/breaking/link.js';
import {
  allowReplication,
  askToPromote,
  copyCluster,
  makeStandby,
  STANDBY_NAME,
} from '../../support/standby/replication.js';
import { withDatabase } from './database.js';
import type { Server } from './servers.js';

export type Standby = {
  /** What replication goes through. */
  link: Link;
  /** Restarts the primary as a standby of nothing: it answers reads. */
  demotePrimary(): Promise<void>;
  /** Promotes the standby, puts its data in the place of the primary's, and has a new standby follow it. */
  takeOver(): Promise<void>;
};

const run = promisify(execFile);
const SILENT = { debug: () => {}, warn: () => {}, error: () => {} };
const POLL_MS = 100;
const COPY_ATTEMPTS = 240;

/** Gives a running Postgres a standby in `path`, until `hooks`. Every commit waits for it from then on. */
export async function openStandby(primary: Server, path: string, hooks: ShutdownHooks): Promise<Standby> {
  await mkdir(path, { mode: 0o711 });
  const dataDir = await lockDataDir({ path });
  hooks.add(() => dataDir.release());
  const link = await startLink({ host: '127.0.0.1', port: Number(new URL(primary.url()).port) });
  hooks.add(link.close);
  // It follows restarts of the primary as the links of processes do.
  primary.links.set(STANDBY_NAME, link);
  const state: State = { primary, dataDir, link, server: undefined, closed: false };
  hooks.add(async () => {
    state.closed = true;
    await state.server?.stop();
  });
  await primary.stop();
  await allowReplication(join(primary.dataDir, 'postgres'));
  primary.lasting = `synchronous_standby_names = '${STANDBY_NAME}'\n`;
  await follow(state);
  return {
    link,
    demotePrimary: async () => {
      await primary.stop();
      await makeStandby(join(primary.dataDir, 'postgres'));
      await primary.start();
    },
    takeOver: () => takeOver(state),
  };
}

type State = {
  primary: Server;
  dataDir: DataDir;
  link: Link;
  server: LocalServer | undefined;
  closed: boolean;
};

async function takeOver(state: State): Promise<void> {
  const { primary, dataDir } = state;
  const { server } = state;
  if (server === undefined || state.closed) return;
  await primary.stop();
  await askToPromote(join(dataDir.path, 'postgres'), server.pid);
  await untilPromoted(server.url);
  await server.stop();
  await replaceCluster(primary.dataDir, () => run('mv', [join(dataDir.path, 'postgres'), primary.dataDir]));
  await follow(state);
}

async function untilPromoted(url: string): Promise<void> {
  for (;;) {
    const [row] = await withDatabase(url, (sql) => sql`SELECT pg_is_in_recovery() AS waits`);
    if (row?.waits === false) return;
    await delay(POLL_MS);
  }
}

/** Copies a stopped primary, starts both, and lets replication begin. */
async function follow(state: State): Promise<void> {
  const { primary, dataDir, link } = state;
  await replaceCluster(dataDir.path, () => copyCluster(primary.dataDir, dataDir.path));
  await primary.configure('');
  await primary.start();
  const { password } = new URL(primary.url());
  await makeStandby(join(dataDir.path, 'postgres'), { port: link.port, password });
  link.set('passes');
  if (!state.closed) state.server = await startPostgres({ dataDir, log: SILENT });
}

/** Tries until there is room: the disk may be full for a while. */
async function replaceCluster(dir: string, put: () => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await rm(join(dir, 'postgres'), { recursive: true, force: true });
      await put();
      return;
    } catch (error) {
      if (attempt === COPY_ATTEMPTS) throw error;
      await delay(2 * POLL_MS);
    }
  }
}
