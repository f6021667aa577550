import { ftruncateSync, writeSync } from 'node:fs';
import { chmod, mkdir, readdir, readFile, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { findFileLock } from '../core/files/file-lock.js';
import { EmbeddedError } from './embedded-error.js';

/** A locked data directory. The value proves that this process holds the lock. */
export interface DataDir {
  /** Absolute, without symbolic links. */
  path: string;
  release(): Promise<void>;
}

/**
 * Creates the directory (0700) if it is missing and locks it until `release` or the end of the process, SIGKILL included.
 * Throws `data_dir_in_use` with the holder, or `data_dir_unusable` if other users own it or may write to it.
 */
export async function lockDataDir(options: { path: string; now?: () => Date }): Promise<DataDir> {
  const { now = () => new Date() } = options;
  const path = await openDirectory(options.path);
  const lockPath = join(path, 'lock');
  const lock = await findFileLock(lockPath).catch((cause: Error) => {
    throw new EmbeddedError('data_dir_unusable', cause.message, { cause });
  });
  if (lock === undefined) {
    const holder = await describeHolder(lockPath);
    throw new EmbeddedError('data_dir_in_use', `The data directory ${path} is already in use by ${holder}.`);
  }
  try {
    ftruncateSync(lock.fd);
    writeSync(lock.fd, JSON.stringify({ pid: process.pid, started_at: now().toISOString() }), 0);
  } catch (error) {
    await lock.release();
    throw unusable(path, error);
  }
  return { path, release: () => lock.release() };
}

async function openDirectory(wanted: string): Promise<string> {
  try {
    await mkdir(wanted, { recursive: true, mode: 0o700 });
    const path = await realpath(wanted);
    await assertPrivate(path);
    return path;
  } catch (error) {
    if (error instanceof EmbeddedError) throw error;
    throw unusable(wanted, error);
  }
}

async function assertPrivate(path: string): Promise<void> {
  const { uid, mode } = await stat(path);
  if (uid !== process.geteuid?.()) {
    const message = `The data directory ${path} belongs to user id ${uid}: run as that user, or choose another directory.`;
    throw new EmbeddedError('data_dir_unusable', message);
  }
  if ((mode & 0o022) === 0) return;
  // An empty directory gets the permissions of a new one.
  if ((await readdir(path)).length === 0) return chmod(path, 0o700);
  const message = `Other users may write into the data directory ${path}: run "chmod go-w ${path}" first.`;
  throw new EmbeddedError('data_dir_unusable', message);
}

/** Reads the holder from the lock file, which is empty between the holder's lock and its write. */
async function describeHolder(lockPath: string): Promise<string> {
  const content = await readFile(lockPath, 'utf8').catch(() => '');
  const match = /^\{"pid":(\d+),"started_at":"([0-9TZ:.-]+)"\}$/.exec(content);
  return match === null ? 'another process' : `process ${match[1]} (started ${match[2]})`;
}

function unusable(path: string, cause: unknown): EmbeddedError {
  const message = `The data directory ${path} cannot be used: ${(cause as Error).message}.`;
  return new EmbeddedError('data_dir_unusable', message, { cause });
}
