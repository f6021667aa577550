import { execFile } from 'node:child_process';
import { chmod, chown, lchown, mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { readOptionalFile } from '../core/files/read-optional-file.js';
import { syncDirectory, writeFileAtomic } from '../core/files/write-file-atomic.js';
import { EmbeddedError } from './embedded-error.js';
import type { PostgresBinaries } from './postgres-binaries.js';
import { explainPostgresFailure } from './postgres-failure.js';
import type { ServerUser } from './server-process.js';

const execute = promisify(execFile);

/**
 * The data directory argument of Postgres. It is relative to the working directory, because the server's user may lack
 * access to the parents: a data directory below root's closed home works.
 */
const WORKING_DIR = '/proc/self/cwd';

/** The role that the service connects as: owner of the database of the same name, no superuser. */
export const ROLE = 'attest';

export interface ClusterOptions {
  binaries: PostgresBinaries;
  user: ServerUser | undefined;
  /** The cluster's own directory. */
  dir: string;
  /** 0600; the password of ROLE. */
  passwordFile: string;
  randomPassword(): string;
}

/** The `-D` argument for a Postgres program that works in `dir`. */
export function dataDirArgument({ user, dir }: Pick<ClusterOptions, 'user' | 'dir'>): string {
  return user !== undefined && process.platform === 'linux' ? WORKING_DIR : dir;
}

/**
 * Prepares the cluster and returns the password of ROLE: creates the cluster if it is missing, sets a new password if the
 * file was lost, rejects another major version. The directory must not be in use.
 */
export async function openCluster(options: ClusterOptions): Promise<string> {
  const version = await findVersion(options.dir);
  if (version === undefined) return createCluster(options);
  assertVersion(options, version);
  await takeOwnership(options);
  // The lock of the data directory is held and no Postgres works here: whatever process this names is another.
  await rm(join(options.dir, 'postmaster.pid'), { force: true });
  return (await findPassword(options)) ?? (await setPassword(options, options.dir, 'ALTER'));
}

/** Creates the cluster in a temporary folder and renames it, so that an interrupted start leaves none. */
async function createCluster(options: ClusterOptions): Promise<string> {
  const { dir, user, binaries } = options;
  const unfinished = unfinishedDir(dir);
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(unfinished, { mode: 0o700 });
  if (user !== undefined) await chown(unfinished, user.uid, user.gid);
  // The builtin provider needs no locale of the operating system.
  const locale = ['--encoding=UTF8', '--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C'];
  const args = [...locale, '--username=postgres', '--auth=reject', '--no-instructions'];
  await runProgram({ ...options, dir: unfinished }, binaries.initdb, args);
  await writeFile(join(unfinished, 'pg_hba.conf'), `host all ${ROLE} 127.0.0.1/32 scram-sha-256\n`, {
    flush: true,
  });
  const password = await setPassword(options, unfinished, 'CREATE');
  await rename(unfinished, dir);
  await syncDirectory(join(dir, '..'));
  return password;
}

/** The temporary folder of a new cluster. */
export function unfinishedDir(dir: string): string {
  return `${dir}.unfinished`;
}

/** Runs SQL in a single-user backend, which needs no password and does not listen. */
async function setPassword(options: ClusterOptions, dir: string, verb: 'CREATE' | 'ALTER'): Promise<string> {
  const password = options.randomPassword();
  const sql = [`${verb} ROLE ${ROLE} LOGIN CREATEDB PASSWORD '${password}'`];
  if (verb === 'CREATE') sql.push(`GRANT pg_monitor TO ${ROLE}`, `CREATE DATABASE ${ROLE} OWNER ${ROLE}`);
  // Without the second setting a failing statement would be logged, password and all.
  const settings = ['-c', 'exit_on_error=on', '-c', 'log_min_error_statement=panic'];
  const args = ['--single', ...settings, 'postgres'];
  await runProgram({ ...options, dir }, options.binaries.postgres, args, `${sql.join('\n')}\n`);
  await writeFileAtomic(options.passwordFile, password);
  return password;
}

async function runProgram(options: ClusterOptions, file: string, args: string[], input = ''): Promise<void> {
  const { dir, user } = options;
  // `--single` has to come first.
  const [first = '', ...rest] = args;
  const env = { LC_ALL: 'C', TZ: 'UTC' };
  const running = execute(file, [first, '-D', dataDirArgument({ user, dir }), ...rest], {
    ...user,
    cwd: dir,
    env,
  });
  running.child.stdin?.on('error', () => undefined);
  running.child.stdin?.end(input);
  try {
    await running;
  } catch (error) {
    const output = hasOutput(error) ? `${error.stderr}` : (error as Error).message;
    throw explainPostgresFailure(dir, output.split('\n'), error);
  }
}

async function findVersion(dir: string): Promise<number | undefined> {
  const version = await readOptionalFile(join(dir, 'PG_VERSION'));
  if (version !== undefined) return Number(version);
  const entries = await readdir(dir).catch(() => []);
  if (entries.length === 0) return undefined;
  const message = `${dir} holds files but no Postgres cluster (no PG_VERSION): put the cluster back or move it away.`;
  throw new EmbeddedError('data_dir_unusable', message);
}

function assertVersion({ dir, binaries }: ClusterOptions, version: number): void {
  if (version === binaries.major) return;
  const message = `${dir} holds data of PostgreSQL ${version}, and this version runs PostgreSQL ${binaries.major}.`;
  const advice = 'Convert it with pg_upgrade, or move it away to start afresh, or set DATABASE_URL.';
  throw new EmbeddedError('version_mismatch', `${message} ${advice}`);
}

/** A copied or restored directory, or one of another machine, may have another owner than Postgres insists on. */
async function takeOwnership({ dir, user }: ClusterOptions): Promise<void> {
  await chmod(dir, 0o700);
  if (user === undefined || (await stat(dir)).uid === user.uid) return;
  await changeOwner(dir, user);
}

/** A directory after its content, so that an interrupted change is done again; links are not followed. */
async function changeOwner(path: string, user: ServerUser): Promise<void> {
  for (const entry of await readdir(path, { withFileTypes: true })) {
    const child = join(path, entry.name);
    await (entry.isDirectory() ? changeOwner(child, user) : lchown(child, user.uid, user.gid));
  }
  await lchown(path, user.uid, user.gid);
}

async function findPassword({ passwordFile }: ClusterOptions): Promise<string | undefined> {
  return (await readOptionalFile(passwordFile)) || undefined;
}

function hasOutput(error: unknown): error is Error & { stderr: string } {
  return error instanceof Error && 'stderr' in error && error.stderr !== '';
}
