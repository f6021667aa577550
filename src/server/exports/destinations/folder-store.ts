/**
 * A folder as a store of objects: an object's name is the path of its file, its version the SHA-256 of the bytes. A web
 * server that serves the folder states content types and caching itself. A new file appears whole or not at all; between the
 * comparison of a version and the rename another process may write, so that writers of one name need a lock of their own.
 */
import { createHash, randomBytes } from 'node:crypto';
import { link, mkdir, open, readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { hasErrno } from '../../core/files/errno.js';
import { syncDirectory, writeFileAtomic } from '../../core/files/write-file-atomic.js';
import { DestinationError } from './destination.js';
import type { ObjectStore } from './object-store.js';

const READABLE = { mode: 0o644 };

/** The store in a folder, which is made with the first object. */
export function folderStore(folder: string): ObjectStore {
  const pathOf = (name: string) => join(folder, name);
  return {
    read: (name) =>
      explained(pathOf(name), async (path) => {
        const found = await find(path);
        return found && { version: found.version, revision: undefined, sha256: found.version };
      }),
    readText: (name) =>
      explained(pathOf(name), async (path) => {
        const found = await find(path);
        return found && { version: found.version, text: found.bytes.toString() };
      }),
    readBytes: (name, range) => explained(pathOf(name), (path) => readRange(path, range)),
    write: ({ name, read }, stored) =>
      explained(pathOf(name), async (path) => {
        const bytes = await buffer(read());
        if (stored === undefined) return create(path, bytes);
        if ((await find(path))?.version !== stored.version) return false;
        await writeFileAtomic(path, bytes, READABLE);
        return true;
      }),
  };
}

async function find(path: string): Promise<{ bytes: Buffer; version: string } | undefined> {
  try {
    const bytes = await readFile(path);
    return { bytes, version: createHash('sha256').update(bytes).digest('hex') };
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

async function readRange(
  path: string,
  { start, end }: { start: number; end: number },
): Promise<Uint8Array | undefined> {
  let file: Awaited<ReturnType<typeof open>>;
  try {
    file = await open(path);
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
  try {
    const { size } = await file.stat();
    const bytes = Buffer.alloc(Math.max(0, Math.min(end, size) - start));
    const { bytesRead } = await file.read(bytes, 0, bytes.length, start);
    return bytes.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

/** Writes a file that is not there; false if it is. */
async function create(path: string, bytes: Uint8Array): Promise<boolean> {
  await mkdir(dirname(path), { recursive: true, mode: 0o755 });
  const temporary = `${path}.${randomBytes(6).toString('hex')}.new`;
  try {
    await writeFileAtomic(temporary, bytes, READABLE);
    await link(temporary, path);
    return true;
  } catch (error) {
    if (hasErrno(error, 'EEXIST')) return false;
    throw error;
  } finally {
    await rm(temporary, { force: true });
    await syncDirectory(dirname(path));
  }
}

/** Runs `work` on a file. Its errors name the file, also those of a full disk, which name none. */
async function explained<T>(path: string, work: (path: string) => Promise<T>): Promise<T> {
  try {
    return await work(path);
  } catch (error) {
    const { message } = error as Error;
    throw new DestinationError(message.includes(path) ? message : `${path}: ${message}`, { cause: error });
  }
}
