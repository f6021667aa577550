import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { close, constants, fstat, open } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { hasErrno } from './errno.js';

const openFd = promisify(open);
const closeFd = promisify(close);
const statFd = promisify(fstat);

/** Darwin's open(2) flag that takes the flock(2) lock while opening. */
const O_EXLOCK = 0x20;

/** Exit code of flock(1), that of util-linux and of BusyBox, if another process holds the lock. */
const LOCK_HELD = 1;
const LOOK_AGAIN_MS = 100;

/** A held lock. The kernel releases it when the process ends. */
interface FileLock {
  /** Descriptor of the locked file, open for reading and writing, owned by the lock. */
  fd: number;
  release(): Promise<void>;
}

/**
 * Takes the exclusive lock of a file, making the file (0600) when it is not there, or returns undefined
 * when another process holds it and `wait` is not set. The file is never removed: removing it would let two
 * processes lock two files of one name.
 */
export async function findFileLock(path: string, { wait = false } = {}): Promise<FileLock | undefined> {
  if (process.platform !== 'darwin') return openThenLock(path, wait);
  const fd = await openLocked(path, wait);
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
 * the inherited descriptor and ends, and the lock stays with the descriptor of this process. Where there is no
 * flock(1), the name of a socket that says which file it is does the same.
 */
async function openThenLock(path: string, wait: boolean): Promise<FileLock | undefined> {
  const fd = await openFd(path, constants.O_RDWR | constants.O_CREAT, 0o600);
  try {
    const exitCode = await runFlock(fd, wait);
    if (exitCode === 0) return { fd, release: () => closeFd(fd) };
    if (exitCode === undefined) {
      const name = await findSocketLock(fd, wait);
      if (name !== undefined) return { fd, release: () => closeBoth(fd, name) };
    } else if (exitCode !== LOCK_HELD) {
      throw new Error(`flock ended with ${exitCode}`);
    }
  } catch (error) {
    await closeFd(fd);
    throw new Error(`Cannot lock ${path}: ${(error as Error).message}.`, { cause: error });
  }
  await closeFd(fd);
  return undefined;
}

/** @returns the exit code; undefined where there is no flock(1) */
async function runFlock(fd: number, wait: boolean): Promise<number | null | undefined> {
  const mode = wait ? ['-x'] : ['-x', '-n'];
  const child = spawn('flock', [...mode, '3'], { stdio: ['ignore', 'ignore', 'ignore', fd] });
  try {
    const [code] = (await once(child, 'exit')) as [number | null];
    return code;
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** Takes the name of the file's device and inode among Linux's abstract sockets (unix(7)), which processes share. */
async function findSocketLock(fd: number, wait: boolean): Promise<Server | undefined> {
  const { dev, ino } = await statFd(fd);
  for (;;) {
    const server = createServer();
    server.listen(`\0attest-lock-${dev}-${ino}`);
    try {
      await once(server, 'listening');
      return server.unref();
    } catch (error) {
      if (!hasErrno(error, 'EADDRINUSE')) throw error;
      if (!wait) return undefined;
      await delay(LOOK_AGAIN_MS);
    }
  }
}

async function closeBoth(fd: number, name: Server): Promise<void> {
  await new Promise((resolve) => name.close(resolve));
  await closeFd(fd);
}
