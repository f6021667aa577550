/**
 * A thread that hashes files. `workerData` says where they are; each message is a job, whose reply has the first files of it:
 * those that were begun within 50 ms, so that another thread can take the others. It imports modules of Node only: in each
 * package it is one file, beside the pool's module.
 */
import { createHash, hash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { isMainThread, parentPort, workerData } from 'node:worker_threads';

/** Where the files are. */
export type ThreadData = {
  /** Absolute path of their folder. */
  readonly root: string;
  /** Whether a file may be a symbolic link. */
  readonly follow: boolean;
};

/** Files to hash, by their paths in the folder; `from` is the place of the first one among all. */
export type ThreadJob = {
  readonly from: number;
  readonly paths: readonly string[];
  /** After a problem the others are only sought. */
  readonly isOpenedOnly: boolean;
};

/** What a thread found: of the files from `from` on, in their order; a problem has its place among them. */
export type ThreadReply = {
  readonly from: number;
  readonly bytes: number[];
  readonly hashes: string[];
  readonly problems: (readonly [place: number, message: string])[];
  /** Bytes read since the last message. */
  read: number;
};

/** Bytes of a large file that were read before the reply. */
export type ThreadProgress = { readonly read: number };

/** Windows has neither constant. */
const OPEN_FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);
const NO_FOLLOW = constants.O_NOFOLLOW ?? 0;
const MAX_JOB_MS = 50;
const REPORTED_BYTES = 16 * 1024 * 1024;
const CHANGED = 'changed while it was read';

/** What is wrong with a file. */
class Problem extends Error {}

type Hashed = { size: number; hex: string; unreported: number };

if (!isMainThread) serve(workerData as ThreadData);

function serve({ root, follow }: ThreadData): void {
  const flags = OPEN_FLAGS | (follow ? 0 : NO_FOLLOW);
  const buffer = Buffer.allocUnsafeSlow(1024 * 1024);
  parentPort?.on('message', ({ from, paths, isOpenedOnly }: ThreadJob) => {
    const end = performance.now() + MAX_JOB_MS;
    const reply: ThreadReply = { from, bytes: [], hashes: [], problems: [], read: 0 };
    for (const path of paths) {
      if (reply.bytes.length > 0 && performance.now() > end) break;
      let done: Hashed = { size: 0, hex: '', unreported: 0 };
      try {
        done = hashFile(`${root}/${path}`, { flags, buffer, isOpenedOnly });
      } catch (error) {
        reply.problems.push([reply.bytes.length, messageOf(error)]);
      }
      reply.bytes.push(done.size);
      reply.hashes.push(done.hex);
      reply.read += done.unreported;
    }
    parentPort?.postMessage(reply);
  });
}

type Reading = { flags: number; buffer: Buffer; isOpenedOnly: boolean };

function hashFile(path: string, { flags, buffer, isOpenedOnly }: Reading): Hashed {
  const fd = openSync(path, flags);
  try {
    if (isOpenedOnly) return { size: 0, hex: '', unreported: 0 };
    const before = fstatSync(fd);
    if (!before.isFile()) throw new Problem('is no file any more');
    const { size } = before;
    const hashed = size < buffer.length ? hashSmall(fd, size, buffer) : hashLarge(fd, size, buffer);
    const after = fstatSync(fd);
    if (after.size !== size || after.mtimeMs !== before.mtimeMs) throw new Problem(CHANGED);
    return hashed;
  } finally {
    closeSync(fd);
  }
}

function hashSmall(fd: number, size: number, buffer: Buffer): Hashed {
  let length = 0;
  while (length <= size) {
    const more = readSync(fd, buffer, length, size + 1 - length, null);
    if (more === 0) break;
    length += more;
  }
  if (length !== size) throw new Problem(CHANGED);
  return { size, hex: hash('sha256', buffer.subarray(0, length), 'hex'), unreported: length };
}

function hashLarge(fd: number, size: number, buffer: Buffer): Hashed {
  const sum = createHash('sha256');
  let [read, reported] = [0, 0];
  while (read <= size) {
    const length = readSync(fd, buffer, 0, buffer.length, null);
    if (length === 0) break;
    sum.update(buffer.subarray(0, length));
    read += length;
    if (read - reported < REPORTED_BYTES) continue;
    parentPort?.postMessage({ read: read - reported } satisfies ThreadProgress);
    reported = read;
  }
  if (read !== size) throw new Problem(CHANGED);
  return { size, hex: sum.digest('hex'), unreported: read - reported };
}

function messageOf(error: unknown): string {
  if (error instanceof Problem) return error.message;
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return 'vanished';
  if (code === 'ELOOP') return 'is no file any more';
  return `cannot be read (${code ?? message})`;
}
