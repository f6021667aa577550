import { chmod, lstat, mkdir, open, readdir, realpath, rename, rm, stat } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { findFileLock } from '../core/files/file-lock.js';
import { EmbeddedError } from './embedded-error.js';

/**
 * Opens a cache directory for programs: `wanted`, or the first usable one of the usual places (for root one that other
 * users can reach). Programs run from it, so no other user may be able to write there. Returns an absolute path.
 */
export async function openCacheDir(wanted?: string): Promise<string> {
  const candidates = wanted === undefined ? usualPlaces() : [wanted];
  const reasons: string[] = [];
  for (const candidate of candidates) {
    try {
      return await openTrusted(candidate);
    } catch (error) {
      reasons.push(`${candidate}: ${(error as Error).message}`);
    }
  }
  throw new EmbeddedError('binaries_unusable', `No cache directory can be used (${reasons.join('; ')}).`);
}

/**
 * Returns `<cacheDir>/<name>`. Calls `build` to fill it if it is missing. The folder appears atomically, and concurrent
 * processes build it once.
 */
export async function cached(
  cacheDir: string,
  name: string,
  build: (dir: string) => Promise<void>,
): Promise<string> {
  const path = join(cacheDir, name);
  if (await exists(path)) return path;
  const lock = await findFileLock(join(cacheDir, 'lock'), { wait: true });
  // Left by a process that died while holding the lock.
  const partial = join(cacheDir, 'partial');
  try {
    if (await exists(path)) return path;
    await rm(partial, { recursive: true, force: true });
    await mkdir(partial);
    await chmod(partial, 0o755);
    await build(partial);
    await syncTree(partial);
    await rename(partial, path);
    return path;
  } finally {
    await rm(partial, { recursive: true, force: true });
    await lock?.release();
  }
}

function usualPlaces(): string[] {
  const user = process.geteuid?.() ?? 0;
  const first = user === 0 ? '/var/cache/attest' : join(homedir(), '.cache', 'attest');
  return [first, join(tmpdir(), `attest-cache-${user}`)];
}

async function openTrusted(wanted: string): Promise<string> {
  await mkdir(dirname(wanted), { recursive: true });
  await mkdir(wanted, { mode: 0o755 }).catch(() => undefined);
  const own = await lstat(wanted);
  if (!own.isDirectory()) throw new Error('not a directory');
  if (own.uid !== process.geteuid?.()) throw new Error(`belongs to user id ${own.uid}`);
  await chmod(wanted, 0o755);
  const path = await realpath(wanted);
  await assertNobodyCanSwap(path);
  return path;
}

/** A user with write access to a parent could replace our directory, unless the parent is sticky. */
async function assertNobodyCanSwap(path: string): Promise<void> {
  for (let parent = dirname(path); ; parent = dirname(parent)) {
    const { uid, mode } = await stat(parent);
    const isSticky = (mode & 0o1000) !== 0;
    if (uid !== 0 && uid !== process.geteuid?.()) throw new Error(`${parent} belongs to user id ${uid}`);
    if ((mode & 0o002) !== 0 && !isSticky) throw new Error(`other users may write into ${parent}`);
    if (parent === dirname(parent)) return;
  }
}

/** Fsyncs the files below `dir`: a rename may survive a power cut that their content does not. */
async function syncTree(dir: string): Promise<void> {
  for (const entry of await readdir(dir, { withFileTypes: true })) {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) await syncTree(path);
    if (!entry.isFile()) continue;
    const handle = await open(path, 'r');
    await handle.sync().finally(() => handle.close());
  }
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
