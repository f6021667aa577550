/** The bundles in a folder: every `*.json`, at any depth. */
import { closeSync, constants, type Dirent, fstatSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { comparePaths } from '../../proof/set/path.js';
import { MAX_BUNDLE_CHARACTERS } from '../../proof/verify/read/read-bundle.js';
import { UsageError } from '../cli.js';
import { errnoReason } from '../input/input-file.js';

/** A file that may be a bundle, or a folder and why it cannot be read. `path` is below the folder, with `/`. */
export type BundleFile = { readonly path: string; readonly problem?: string };

const MIB = 1024 * 1024;
const EXTENSION = '.json';

/**
 * Lists the bundles, in the order of comparePaths, with the folders that cannot be read. Symbolic links to folders are not
 * followed, so that there are no loops. Throws UsageError if the folder itself cannot be read, or has no bundles.
 */
export function listBundles(folder: string, isOmitted: (path: string) => boolean): BundleFile[] {
  const found: BundleFile[] = [];
  const left = [''];
  for (let path = left.pop(); path !== undefined; path = left.pop()) {
    const below = (name: string) => (path === '' ? name : `${path}/${name}`);
    for (const entry of readFolder(folder, path, found)) {
      const inner = below(entry.name);
      if (entry.isDirectory()) left.push(inner);
      else if (entry.name.endsWith(EXTENSION) && !isOmitted(inner)) found.push({ path: inner });
    }
  }
  if (found.length === 0) throw new UsageError(`${folder} has no bundles: no file below it ends with .json`);
  return found.sort((a, b) => comparePaths(a.path, b.path));
}

function readFolder(folder: string, path: string, found: BundleFile[]): Dirent[] {
  try {
    return readdirSync(join(folder, path), { withFileTypes: true });
  } catch (error) {
    const problem = `cannot be read: ${errnoReason(error as Error)}`;
    if (path === '') throw new UsageError(`${folder} ${problem}`);
    found.push({ path, problem });
    return [];
  }
}

/**
 * Reads a bundle, or says why it cannot be read. It is opened without waiting, so that a pipe holds nothing up. Synchronous:
 * 20 µs for a file in the cache of the system, by promises 120.
 */
export function readBundleBytes(path: string): { bytes: Uint8Array } | { problem: string } {
  let file: number | undefined;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const found = fstatSync(file);
    if (!found.isFile()) return { problem: 'is not a file' };
    if (found.size > MAX_BUNDLE_CHARACTERS) {
      return { problem: `is too large for a bundle: over ${MAX_BUNDLE_CHARACTERS / MIB} MiB` };
    }
    const bytes = Buffer.allocUnsafe(found.size);
    let length = 0;
    for (let read = -1; read !== 0 && length < bytes.length; length += read) {
      read = readSync(file, bytes, length, bytes.length - length, null);
    }
    return { bytes: bytes.subarray(0, length) };
  } catch (error) {
    return { problem: `cannot be read: ${errnoReason(error as Error)}` };
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
