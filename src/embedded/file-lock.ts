import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { close, constants, open } from 'node:fs';
import { promisify } from 'node:util';
import { EmbeddedError, hasErrno } from './embedded-error.js';

const openFd = promisify(open);
const closeFd = promisify(close);

/** Darwin's open(2) flag that takes the flock(2) lock while opening. */
const O_EXLOCK = 0x20;

/** Exit code of flock(1) when the lock is held by somebody else. */
const LOCK_HELD = 75;

/** A held flock(2) lock. The kernel drops it when the process ends, however it ends. */
export interface FileLock {
  /** Descriptor of the locked file, open for reading and writing, owned by the lock. */
  fd: number;
  release(): Promise<void>;
}

/**
 * Takes the exclusive flock(2) lock of a file, making the file (0600) when it is not there, or returns undefined
 * when another process holds it and `wait` is not set. The file is never removed: removing it would let two
 * processes lock two files of one name.
 */
export async function findFileLock(path: string, { wait = false } = {}): Promise<FileLock | undefined> {
  const fd = process.platform === 'darwin' ? await openLocked(path, wait) : await openThenLock(path, wait);
  return fd === undefined ? undefined : { fd, release: () => closeFd(fd) };
}

async function openLocked(path: string, wait: boolean): Promise<number | undefined> {
  const flags = constants.O_RDWR | constants.O_CREAT | O_EXLOCK | (wait ? 0 : constants.O_NONBLOCK);
  try {
    return await openFd(path, flags, 0o600);
  } catch (error) {
    if (hasErrno(error, 'EAGAIN', 'EWOULDBLOCK')) return undefined;
    throw error;
  }
}

/**
 * Node has no flock. The lock belongs to the open file description, which a child shares: flock(1) locks it through
 * the inherited descriptor and ends, and the lock stays with the descriptor of this process.
 */
async function openThenLock(path: string, wait: boolean): Promise<number | undefined> {
  const fd = await openFd(path, constants.O_RDWR | constants.O_CREAT, 0o600);
  try {
    const exitCode = await runFlock(fd, wait);
    if (exitCode === 0) return fd;
    if (exitCode !== LOCK_HELD) throw new Error(`flock ended with ${exitCode}`);
  } catch (error) {
    await closeFd(fd);
    throw new EmbeddedError('data_dir_unusable', `Cannot lock ${path}: ${(error as Error).message}.`, {
      cause: error,
    });
  }
  await closeFd(fd);
  return undefined;
}

async function runFlock(fd: number, wait: boolean): Promise<number | null> {
  const mode = wait ? ['-x'] : ['-x', '-n', '-E', String(LOCK_HELD)];
  const child = spawn('flock', [...mode, '3'], { stdio: ['ignore', 'ignore', 'ignore', fd] });
  const [code] = (await once(child, 'exit')) as [number | null];
  return code;
}
