/** Makes a stopped Postgres cluster one that can be replicated, and copies of it standbys. */
import { execFile } from 'node:child_process';
import { appendFile, chown, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { getPostgresBinaries } from '../../../src/server/embedded/postgres-binaries.js';
import { dataDirArgument, ROLE } from '../../../src/server/embedded/postgres-cluster.js';
import { findPostgresUser } from '../../../src/server/embedded/postgres-user.js';

const execute = promisify(execFile);

/** What the primary's `synchronous_standby_names` calls the standby. */
export const STANDBY_NAME = 'standby';

/** Lets the service's role replicate a stopped cluster. */
export async function allowReplication(dir: string): Promise<void> {
  const user = await findPostgresUser();
  const { postgres } = await getPostgresBinaries({ user });
  const args = ['--single', '-D', dataDirArgument({ user, dir }), '-c', 'exit_on_error=on', 'postgres'];
  const running = execute(postgres, args, { ...user, cwd: dir, env: { LC_ALL: 'C', TZ: 'UTC' } });
  running.child.stdin?.end(`ALTER ROLE ${ROLE} REPLICATION\n`);
  await running;
  await appendFile(join(dir, 'pg_hba.conf'), `host replication ${ROLE} 127.0.0.1/32 scram-sha-256\n`);
}

/** Copies a stopped cluster and its password between data directories. */
export async function copyCluster(from: string, to: string): Promise<void> {
  const parts = ['postgres', 'postgres.password'].map((part) => join(from, part));
  await execute('cp', ['-a', ...parts, to]);
}

/** Settings beside those that Postgres is started with; in force at the next start, or after SIGHUP. */
export async function configure(dir: string, settings: Record<string, string>): Promise<void> {
  const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value}'\n`);
  await writeOwned(dir, 'postgresql.auto.conf', lines.join(''));
}

/** Has a stopped cluster start in recovery. With `from`, it streams from that port of the loopback address. */
export async function makeStandby(dir: string, from?: { port: number; password: string }): Promise<void> {
  await writeOwned(dir, 'standby.signal', '');
  if (from === undefined) return;
  const { port, password } = from;
  await configure(dir, {
    primary_conninfo: `host=127.0.0.1 port=${port} user=${ROLE} password=${password} application_name=${STANDBY_NAME}`,
    wal_retrieve_retry_interval: '100ms',
  });
}

/** Asks a running standby to become a primary, as `pg_ctl promote` does. */
export async function askToPromote(dir: string, pid: number): Promise<void> {
  await writeOwned(dir, 'promote', '');
  process.kill(pid, 'SIGUSR1');
}

/** Owned by the cluster's user, and there at once: Postgres removes some of these files when it sees them. */
async function writeOwned(dir: string, name: string, content: string): Promise<void> {
  const unfinished = join(dir, `${name}.unfinished`);
  await writeFile(unfinished, content, { mode: 0o600 });
  const { uid, gid } = await stat(dir);
  await chown(unfinished, uid, gid);
  await rename(unfinished, join(dir, name));
}
