/** A Postgres and its synchronous standby, with a link between them that can be stalled, and the ways they fail over. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Test } from 'tap';
import { connectPool, type Pool } from '../../../src/server/database/connect.js';
import { migrate } from '../../../src/server/database/migrate.js';
import { lockDataDir } from '../../../src/server/embedded/data-dir.js';
import { startPostgres } from '../../../src/server/embedded/postgres.js';
import { type Link, startLink } from '../breaking/link.js';
import { startProxy } from '../breaking/proxy.js';
import { copyClusterTemplate } from '../servers/cluster-template.js';
import { DATA_DIR_PREFIX, dataFolder } from '../servers/data-folder.js';
import { type PrivateServer, startPrivatePostgres } from '../servers/private-servers.js';
import { until } from '../until.js';
import {
  allowReplication,
  askToPromote,
  configure,
  copyCluster,
  makeStandby,
  STANDBY_NAME,
} from './replication.js';

export type StandbyPair = {
  /** The service's; of whichever server is in charge, and the same over restarts and promotion. */
  url: string;
  /** Of both servers, the standby first. */
  urlOfBoth: string;
  /** Of the standby. */
  standbyUrl: string;
  /** Past the service's connections: the first primary, and the standby, which answers reads. */
  primary: Pool;
  standby: Pool;
  /** What replication goes through. */
  link: Link;
  /** The standby does not answer any more: commits on the primary wait. */
  takeStandbyAway(): void;
  /** It answers again. Waits until it has everything. */
  bringStandbyBack(): Promise<void>;
  /** Waits until so many commits wait for the standby. */
  untilCommitsWait(count?: number): Promise<void>;
  /** Ends the sessions whose commits wait: they are committed on the primary alone. */
  endWaitingSessions(): Promise<void>;
  /** Cancels the waits: the commits are answered with a warning, and are on the primary alone. */
  cancelWaits(): Promise<void>;
  /** Stops and starts the primary in an orderly way: what waited is committed on it alone. */
  restartPrimary(): Promise<void>;
  /** SIGKILL, and recovery. */
  crashPrimary(): Promise<void>;
  /** Makes the primary a standby of nothing, as a failover does to the old primary: it answers reads. */
  demotePrimary(): Promise<void>;
  /** Has sessions of the primary refuse to write by default, those that stand included. */
  makePrimaryReadOnly(): Promise<void>;
  /** Cuts replication, makes the standby a primary, with no standby of its own, and sends the service there. */
  promoteStandby(): Promise<void>;
};

const SILENT = { debug: () => {}, warn: () => {}, error: () => {} };
const SYNCHRONOUS = { synchronous_standby_names: STANDBY_NAME };

/** Starts both over a migrated database until the test ends. */
export async function startStandbyPair(
  test: Test,
  settings: Record<string, string> = {},
): Promise<StandbyPair> {
  const base = await findBase();
  const [primaryDir, standbyDir] = [await copyOf(test, base), await copyOf(test, base)];
  await configure(join(primaryDir, 'postgres'), { ...SYNCHRONOUS, ...settings });
  const primary = await startPrivatePostgres(test, primaryDir);
  const link = await startLink(addressOf(primary));
  test.teardown(link.close);
  const { password } = new URL(primary.url);
  await makeStandby(join(standbyDir, 'postgres'), { port: link.port, password });
  const standby = await startPrivatePostgres(test, standbyDir);
  const service = await startProxy(addressOf(primary));
  test.teardown(service.close);
  const url = new URL(primary.url);
  url.port = String(service.port);
  const pair = {
    link,
    servers: { primary, standby },
    primary: lookAt(test, primary),
    standby: lookAt(test, standby),
  };
  await untilReplicated(pair);
  return {
    url: url.href,
    urlOfBoth: primary.url.replace('127.0.0.1', `127.0.0.1:${standby.proxy.port},127.0.0.1`),
    standbyUrl: standby.url,
    ...pair,
    takeStandbyAway: () => link.set('stalls'),
    bringStandbyBack: async () => {
      link.set('passes');
      await untilReplicated(pair);
    },
    ...commitsThatWait(lookAt(test, primary)),
    ...failures(pair, settings),
    promoteStandby: async () => {
      link.set('refuses');
      await askToPromote(standby.dir, standby.pid());
      await until('the standby is promoted', async () => !(await isInRecovery(pair.standby)));
      service.point(addressOf(standby));
    },
  };
}

type Pair = {
  link: Link;
  servers: { primary: PrivateServer; standby: PrivateServer };
  primary: Pool;
  standby: Pool;
};

type CommitsThatWait = Pick<StandbyPair, 'untilCommitsWait' | 'endWaitingSessions' | 'cancelWaits'>;

/** @param primary of its own: what is sent beside a commit whose wait is cancelled is rejected as well */
function commitsThatWait(primary: Pool): CommitsThatWait {
  const count = async () => (await primary`SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'`).length;
  return {
    untilCommitsWait: async (wanted = 1) => {
      await until(`${wanted} commits wait for the standby`, async () => (await count()) >= wanted);
    },
    endWaitingSessions: async () => {
      await primary`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`;
    },
    cancelWaits: async () => {
      await primary`SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`;
    },
  };
}

type Failures = Pick<
  StandbyPair,
  'restartPrimary' | 'crashPrimary' | 'demotePrimary' | 'makePrimaryReadOnly'
>;

function failures(
  { link, servers: { primary }, primary: pool }: Pair,
  settings: Record<string, string>,
): Failures {
  /** An orderly stop waits for a standby that is connected. */
  const stop = async () => {
    link.cut('reset');
    await primary.stop();
  };
  const untilUp = () => until('the primary answers', async () => (await pool`SELECT 1`).length === 1);
  const start = async () => {
    await primary.start();
    await untilUp();
  };
  return {
    restartPrimary: async () => {
      await stop();
      await start();
    },
    crashPrimary: async () => {
      await primary.kill();
      await start();
    },
    demotePrimary: async () => {
      await stop();
      await makeStandby(primary.dir);
      await start();
    },
    makePrimaryReadOnly: async () => {
      await configure(primary.dir, { ...SYNCHRONOUS, ...settings, default_transaction_read_only: 'on' });
      process.kill(primary.pid(), 'SIGHUP');
      await until('it is read-only', async () => {
        const [row] = await pool<
          { default_transaction_read_only: string }[]
        >`SHOW default_transaction_read_only`;
        return row?.default_transaction_read_only === 'on';
      });
    },
  };
}

/** The standby is the synchronous one and has applied all that is written. */
async function untilReplicated({ primary }: Pick<Pair, 'primary'>): Promise<void> {
  await until('the standby has everything', async () => {
    const rows = await primary`
      SELECT FROM pg_stat_replication
      WHERE sync_state = 'sync' AND state = 'streaming' AND replay_lsn >= pg_current_wal_flush_lsn()`;
    return rows.length === 1;
  });
}

async function isInRecovery(pool: Pool): Promise<boolean> {
  const [row] = await pool<{ is: boolean }[]>`SELECT pg_is_in_recovery() AS is`;
  return row?.is === true;
}

function lookAt(test: Test, { url }: PrivateServer): Pool {
  const pool = connectPool({ url, name: 'test', max: 2, statementTimeoutMs: 60_000 });
  test.teardown(() => pool.end({ timeout: 1 }));
  return pool;
}

function addressOf({ proxy }: PrivateServer): { host: string; port: number } {
  return { host: '127.0.0.1', port: proxy.port };
}

async function copyOf(test: Test, base: string): Promise<string> {
  const dir = await mkdtemp(join(dataFolder(), DATA_DIR_PREFIX));
  test.teardown(() => rm(dir, { recursive: true, force: true }));
  await copyCluster(base, dir);
  return dir;
}

let made: Promise<string> | undefined;

/** The cluster that the pairs of a test file are copies of. */
function findBase(): Promise<string> {
  made ??= makeBase();
  return made;
}

async function makeBase(): Promise<string> {
  const { default: t } = await import('tap');
  const path = await mkdtemp(join(dataFolder(), DATA_DIR_PREFIX));
  t.teardown(() => rm(path, { recursive: true, force: true }));
  await copyClusterTemplate(path);
  // Locked for as long as it is used: what is not is cleared away by the next run.
  const dataDir = await lockDataDir({ path });
  t.teardown(() => dataDir.release());
  const postgres = await startPostgres({ dataDir, log: SILENT });
  const pool = connectPool({ url: postgres.url, name: 'migrate', max: 1, statementTimeoutMs: 60_000 });
  await migrate(pool).finally(async () => {
    await pool.end();
    await postgres.stop();
  });
  await allowReplication(join(path, 'postgres'));
  return path;
}
