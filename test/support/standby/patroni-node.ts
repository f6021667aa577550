/** One Postgres under Patroni, behind links: what others reach it by, and what it reaches etcd by. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync } from 'node:fs';
import { chown, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Test } from 'tap';
import { connectPool, type Pool } from '../../../src/server/database/connect.js';
import type { ServerUser } from '../../../src/server/embedded/server-process.js';
import { type Link, type LinkMode, startLink } from '../breaking/link.js';
import type { Target } from '../breaking/proxy.js';
import { POSTGRES_PROGRAMS } from '../foreign/patroni/postgresql.js';

/** What all nodes have in common; `times` are Patroni's, in seconds. */
export type Surroundings = {
  python: string;
  user: ServerUser | undefined;
  etcd: Target;
  scope: string;
  times: Record<'ttl' | 'loop_wait' | 'retry_timeout', number>;
};

export type PatroniNode = {
  name: string;
  configFile: string;
  /** Host and port of its Postgres, as other nodes and the service reach it. */
  address: string;
  /** Of its Postgres, past the links. */
  url: string;
  /** Of Patroni, past the links. */
  apiUrl: string;
  /** Of Patroni's API on the same host, as others reach it. */
  apiPort: number;
  /** Its Postgres, past the links. */
  pool: Pool;
  /** Whether it was started, and neither killed nor halted since. */
  isUp(): boolean;
  isPrimary(): Promise<boolean>;
  /** Starts Patroni, which starts Postgres. */
  start(): Promise<void>;
  /** SIGKILL to Patroni and to all of its Postgres. */
  kill(): Promise<void>;
  /** SIGKILL to Patroni alone: its Postgres goes on, and nothing demotes it until `start`. */
  killPatroni(): Promise<void>;
  /** SIGSTOP to Patroni and to all of its Postgres, until `goOn`. */
  standStill(): void;
  goOn(): void;
  /** What its network does with connections from others and to etcd. */
  setNetwork(mode: LinkMode): void;
};

type Place = { name: string; home: string; ports: { postgres: number; api: number } };

/** Of the superuser `postgres`, and of replication. */
export const PASSWORD = 'patroni';
const HOST = '127.0.0.1';

/** Prepares a node, whose processes end with the test. Nothing runs before `start`. */
export async function openNode(
  test: Pick<Test, 'teardown'>,
  around: Surroundings,
  { name, home, ports }: Place,
): Promise<PatroniNode> {
  const links = await openLinks(test, around, ports);
  const configFile = join(home, 'patroni.json');
  await writeFile(configFile, JSON.stringify(configuration(around, { name, home, ports }, links)));
  if (around.user) await chown(configFile, around.user.uid, around.user.gid);
  const url = `postgres://postgres:${PASSWORD}@${HOST}:${ports.postgres}/postgres`;
  const pool = openPool(test, url);
  let patroni: ChildProcess | undefined;
  let isStill = false;
  const signal = (what: NodeJS.Signals) => {
    // Patroni first: it would start its Postgres again.
    for (const pid of [patroni?.pid, ...postgresPids(home)]) sendSignal(pid, what);
  };
  const killPatroni = async () => {
    if (patroni === undefined) return;
    const exited = once(patroni, 'exit');
    patroni.kill('SIGKILL');
    await exited;
    patroni = undefined;
  };
  const kill = async () => {
    signal('SIGKILL');
    await killPatroni();
    isStill = false;
  };
  test.teardown(kill);
  // A file that fails outside its tests runs no teardown.
  process.once('exit', () => signal('SIGKILL'));
  return {
    name,
    configFile,
    address: `${HOST}:${links.postgres.port}`,
    url,
    apiUrl: `http://${HOST}:${ports.api}`,
    apiPort: links.api.port,
    pool,
    isUp: () => patroni !== undefined && !isStill,
    isPrimary: async () => patroni !== undefined && !isStill && (await isPrimary(pool)),
    start: async () => {
      const log = openSync(join(home, 'patroni.log'), 'a');
      patroni = spawn(around.python, ['-m', 'patroni', configFile], {
        ...around.user,
        cwd: home,
        env: { PATH: process.env.PATH, HOME: home, LC_ALL: 'C' },
        stdio: ['ignore', log, log],
      });
      await once(patroni, 'spawn');
    },
    kill,
    killPatroni,
    standStill: () => {
      isStill = true;
      signal('SIGSTOP');
    },
    goOn: () => {
      isStill = false;
      signal('SIGCONT');
    },
    setNetwork: (mode) => {
      for (const link of Object.values(links)) link.set(mode);
    },
  };
}

type Links = Record<'postgres' | 'api' | 'etcd', Link>;

async function openLinks(
  test: Pick<Test, 'teardown'>,
  { etcd }: Surroundings,
  ports: Place['ports'],
): Promise<Links> {
  const open = async (target: Target) => {
    const link = await startLink(target);
    test.teardown(link.close);
    return link;
  };
  return {
    postgres: await open({ host: HOST, port: ports.postgres }),
    api: await open({ host: HOST, port: ports.api }),
    etcd: await open(etcd),
  };
}

function configuration(
  { etcd: _, scope, times }: Surroundings,
  { name, home, ports }: Place,
  links: Links,
): object {
  const authentication = { username: 'postgres', password: PASSWORD };
  return {
    scope,
    name,
    restapi: { listen: `${HOST}:${ports.api}`, connect_address: `${HOST}:${links.api.port}` },
    // As a proxy: it would take the addresses that etcd tells, past the link.
    etcd3: { hosts: `${HOST}:${links.etcd.port}`, use_proxies: true },
    bootstrap: {
      dcs: {
        ...times,
        synchronous_mode: true,
        synchronous_mode_strict: true,
        // A standby that lags behind by more does not take over; the synchronous one has everything.
        maximum_lag_on_failover: 1_048_576,
        postgresql: {
          use_pg_rewind: true,
          remove_data_directory_on_rewind_failure: true,
          remove_data_directory_on_diverged_timelines: true,
          parameters: { max_connections: 200, shared_buffers: '64MB', wal_keep_size: '256MB' },
        },
      },
      initdb: [{ encoding: 'UTF8' }, { locale: 'C' }, 'data-checksums'],
    },
    postgresql: {
      listen: `${HOST}:${ports.postgres}`,
      connect_address: `${HOST}:${links.postgres.port}`,
      bin_dir: POSTGRES_PROGRAMS,
      data_dir: join(home, 'data'),
      pgpass: join(home, 'pgpass'),
      parameters: { unix_socket_directories: '' },
      pg_hba: ['host all all 127.0.0.1/32 scram-sha-256', 'host replication all 127.0.0.1/32 scram-sha-256'],
      authentication: { superuser: authentication, replication: authentication, rewind: authentication },
    },
    watchdog: { mode: 'off' },
  };
}

function openPool(test: Pick<Test, 'teardown'>, url: string): Pool {
  const pool = connectPool({ url, name: 'node', max: 2, statementTimeoutMs: 2_000 });
  test.teardown(() => pool.end({ timeout: 1 }));
  return pool;
}

async function isPrimary(pool: Pool): Promise<boolean> {
  const rows = await pool<{ is: boolean }[]>`SELECT NOT pg_is_in_recovery() AS is`.catch(() => []);
  return rows[0]?.is === true;
}

/** The server and its children; none while it is down. */
function postgresPids(home: string): number[] {
  try {
    const pid = Number(readFileSync(join(home, 'data', 'postmaster.pid'), 'utf8').split('\n')[0]);
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ');
    return [pid, ...children.filter(Boolean).map(Number)];
  } catch {
    return [];
  }
}

function sendSignal(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
