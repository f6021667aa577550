/**
 * The checkpoint register in a folder of files. A log's entry is the name of the only file in `<origin>.checkpoint/`:
 * `<size>-<root>-<key hash>`. One rename(2) from the expected name to the new name is the compare-and-swap: it fails with
 * ENOENT if the entry has changed. So exactly one of several writers succeeds, on a shared folder too, and there is no
 * lock that a stopped process could hold.
 *
 * Earlier releases wrote `<size> <root>` to a file `<origin>`. That file is read until an entry replaces it; while both
 * exist the larger size counts.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { syncDirectory } from '../../core/files/write-file-atomic.js';
import { type Register, type RegisterEntry, RegisterError } from './register.js';

/** A register that stores size and root alone, of any entry. */
type FileRegister = Omit<Register, 'replace'> & {
  replace(standing: RegisterEntry | undefined, next: RegisterEntry): Promise<boolean>;
};

/** The current entry and its file name; `file` is undefined for an entry of the earlier format. */
type StoredEntry = { entry: RegisterEntry; file: string | undefined };

const ENTRY = /^(\d{1,15})-([0-9a-f]{64})-([0-9a-f]{64})$/;
const EARLIER_ENTRY = /^(\d{1,15}) ([0-9a-f]{64})\n$/;
/** A listing during a rename may show neither name or both. */
const LISTINGS = 3;
const LISTING_PAUSE_MS = 20;

/** @param sync makes the names in a directory durable */
export function openFileRegister(
  folder: string,
  sync: (path: string) => Promise<void> = syncDirectory,
): FileRegister {
  const location = (origin: string) => join(folder, `${origin}.checkpoint`);
  const earlier = (origin: string) => join(folder, origin);
  const find = async (origin: string): Promise<StoredEntry | undefined> => {
    // In this order: the earlier format is deleted once the other exists.
    const before = await findEarlier(origin, earlier(origin));
    const now = await findEntry(origin, location(origin));
    if (before === undefined || (now !== undefined && now.entry.size >= before.size)) return now;
    return { entry: before, file: now?.file };
  };
  const put = async (standing: RegisterEntry | undefined, next: RegisterEntry): Promise<boolean> => {
    const found = await find(next.origin);
    if (!isSame(found?.entry, standing)) return false;
    const path = location(next.origin);
    const file = nameOf(next);
    if (found?.file === undefined) {
      if (!(await createFolder(path, file))) return false;
    } else if (found.file !== file && !(await renameIfExists(join(path, found.file), join(path, file)))) {
      return false;
    }
    await sync(path);
    await sync(folder);
    await rm(earlier(next.origin), { force: true });
    return true;
  };
  return {
    location,
    read: (origin) => withPath(location(origin), 'read', async () => (await find(origin))?.entry),
    replace: (standing, next) => withPath(location(next.origin), 'written', () => put(standing, next)),
  };
}

/** Adds the path to errors: the system's messages do not always name it. */
async function withPath<T>(path: string, what: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    const message = `the checkpoint register ${path} cannot be ${what}: ${(error as Error).message}`;
    throw new RegisterError(message, { cause: error });
  }
}

async function findEntry(origin: string, path: string): Promise<StoredEntry | undefined> {
  for (let listing = 1; ; listing++) {
    const files = await undefinedIfMissing(() => list(path));
    if (files === undefined) return undefined;
    const [file = ''] = files;
    const match = ENTRY.exec(file);
    if (files.length === 1 && match !== null) {
      const [, size, root = '', key = ''] = match;
      const [rootHash, keyHash] = [Buffer.from(root, 'hex'), Buffer.from(key, 'hex')];
      return { entry: { origin, size: Number(size), rootHash, keyHash }, file };
    }
    if (listing === LISTINGS) {
      throw new Error(
        `it holds ${files.length} files, and not one that is named <size>-<root hash>-<key hash>`,
      );
    }
    await delay(LISTING_PAUSE_MS);
  }
}

/** The names in a folder, without hidden files that some file systems add. */
async function list(path: string): Promise<string[]> {
  return (await readdir(path)).filter((name) => !name.startsWith('.'));
}

async function findEarlier(origin: string, path: string): Promise<RegisterEntry | undefined> {
  const text = await undefinedIfMissing(() => readFile(path, 'utf8'));
  if (text === undefined) return undefined;
  const match = EARLIER_ENTRY.exec(text);
  if (match === null) throw new Error(`the file ${path} is not "<size> <root hash>"`);
  const [, size, root = ''] = match;
  return { origin, size: Number(size), rootHash: Buffer.from(root, 'hex'), keyHash: undefined };
}

function nameOf({ size, rootHash, keyHash }: RegisterEntry): string {
  if (keyHash === undefined) throw new Error('an entry without the hash of its log key is never written');
  return `${size}-${Buffer.from(rootHash).toString('hex')}-${Buffer.from(keyHash).toString('hex')}`;
}

function isSame(a: RegisterEntry | undefined, b: RegisterEntry | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.size === b.size && Buffer.compare(a.rootHash, b.rootHash) === 0 && sameKey(a.keyHash, b.keyHash);
}

function sameKey(a: Uint8Array | undefined, b: Uint8Array | undefined): boolean {
  return a === undefined || b === undefined ? a === b : Buffer.compare(a, b) === 0;
}

/** Creates the directory with its file atomically. Returns false if it exists: rename(2) replaces no directory that is not empty. */
async function createFolder(path: string, file: string): Promise<boolean> {
  const made = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    await mkdir(made, { mode: 0o700 });
    await writeFile(join(made, file), '', { mode: 0o600 });
    await rename(made, path);
    return true;
  } catch (error) {
    await rm(made, { recursive: true, force: true });
    if (isCode(error, 'ENOTEMPTY', 'EEXIST')) return false;
    throw error;
  }
}

async function renameIfExists(from: string, to: string): Promise<boolean> {
  if ((await undefinedIfMissing(() => rename(from, to).then(() => true))) === true) return true;
  // NFS may lose the reply to a rename that succeeded and send the rename again.
  const files = await list(dirname(to));
  return files.length === 1 && join(dirname(to), files[0] ?? '') === to;
}

async function undefinedIfMissing<T>(run: () => Promise<T>): Promise<T | undefined> {
  try {
    return await run();
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

function isCode(error: unknown, ...codes: string[]): boolean {
  return codes.includes((error as NodeJS.ErrnoException).code ?? '');
}
