/** The files of a folder, in the order of a set's entries. Node only. */
import type { Dirent } from 'node:fs';
import { MAX_ENTRIES } from '../../proof/set/entry.js';
import { comparePaths, findPathProblem } from '../../proof/set/path.js';
import { gatherProblems, type Problems } from './folder-error.js';

/** Which files of a folder count. */
export type ListOptions = {
  /** Whether a file counts, by its path in the folder. A folder (its path without a slash at the end) is not entered if false. */
  readonly filter?: ((path: string, isFolder: boolean) => boolean) | undefined;
  /** Follows symbolic links whose target is in the folder; otherwise each link is a problem. */
  readonly followSymlinks?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
};

/** The walk reads folders synchronously, and lets signals and timers run after this time. */
const MAX_BLOCKED_MS = 20;

/** Links may lead to the same folders again and again. */
const MAX_FOLDERS = 1_000_000;

/** Paths of files, or of folders that are still to be read: `chain` has the real paths above a folder, for loops. */
type Found = { path: string; chain?: readonly string[] };

/**
 * Lists the paths of the files in a folder and the folders in it: relative, with `/`, in the order of comparePaths. Throws
 * FolderError with all links, special files, unreadable folders and names that a set cannot have; the error of the file
 * system if the folder itself cannot be read; the signal's reason.
 */
export async function listFiles(folder: string, options: ListOptions = {}): Promise<string[]> {
  const fs = process.getBuiltinModule('node:fs');
  const problems = gatherProblems();
  const files: string[] = [];
  const root = fs.realpathSync(folder);
  fs.readdirSync(root, { withFileTypes: true });
  // The next one is at the end. Folders are taken apart in place, which is the order of whole paths.
  const left: Found[] = [{ path: '', chain: [root] }];
  let folders = 0;
  let since = performance.now();
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { path, chain } = next;
    if (chain === undefined) {
      files.push(path);
    } else {
      if (++folders > MAX_FOLDERS) throw new Error(`there are more than ${MAX_FOLDERS} folders`);
      left.push(...readFolder({ root, path, chain }, options, problems));
    }
    if (files.length > MAX_ENTRIES) throw new Error(`there are more than ${MAX_ENTRIES} files`);
    if (performance.now() - since < MAX_BLOCKED_MS) continue;
    await new Promise((resolve) => setImmediate(resolve));
    options.signal?.throwIfAborted();
    since = performance.now();
  }
  problems.throwIfAny();
  return files;
}

type Folder = { readonly root: string; readonly path: string; readonly chain: readonly string[] };

/** What a folder has that counts, the last one first. */
function readFolder(folder: Folder, options: ListOptions, problems: Problems): Found[] {
  const { root, path } = folder;
  const fs = process.getBuiltinModule('node:fs');
  let entries: Dirent[];
  try {
    entries = fs.readdirSync(path === '' ? root : `${root}/${path}`, { withFileTypes: true });
  } catch (error) {
    problems.add(path, `is a folder that cannot be read (${codeOf(error)})`);
    return [];
  }
  const malformed = entries.some(({ name }) => name.includes('\ufffd')) ? findMalformed(folder) : [];
  const found: (Found & { key: string })[] = [];
  for (const entry of entries) {
    const inner = below(path, entry.name);
    if (malformed.some(({ decoded }) => decoded === entry.name)) continue;
    const one = takeEntry(folder, { path: inner, entry }, options, problems);
    if (one !== undefined) found.push({ ...one, key: one.chain === undefined ? inner : `${inner}/` });
  }
  for (const { decoded, shown } of malformed) {
    if (options.filter?.(below(path, decoded), false) !== false) {
      problems.add(below(path, shown), 'has a name that is not UTF-8');
    }
  }
  return found.sort((a, b) => comparePaths(b.key, a.key)).map(({ key: _, ...one }) => one);
}

function takeEntry(
  folder: Folder,
  { path, entry }: { path: string; entry: Dirent },
  { filter, followSymlinks }: ListOptions,
  problems: Problems,
): Found | undefined {
  const isKept = (isFolder: boolean) => filter === undefined || filter(path, isFolder);
  const problem = findPathProblem(path);
  if (problem !== undefined) {
    if (isKept(entry.isDirectory())) problems.add(path, problem);
  } else if (entry.isDirectory()) {
    return isKept(true)
      ? { path, chain: [...folder.chain, join(folder.chain.at(-1), entry.name)] }
      : undefined;
  } else if (entry.isFile()) {
    return isKept(false) ? { path } : undefined;
  } else if (!isKept(false)) {
    return undefined;
  } else if (!entry.isSymbolicLink()) {
    problems.add(path, `is ${kindOf(entry)}, not a file`);
  } else if (followSymlinks) {
    return follow(folder, path, isKept, problems);
  } else {
    problems.add(path, 'is a symbolic link: follow links, or exclude it');
  }
  return undefined;
}

/** What a link leads to; undefined of a problem, and of a folder that does not count. */
function follow(
  { root, chain }: Folder,
  path: string,
  isKept: (isFolder: boolean) => boolean,
  problems: Problems,
): Found | undefined {
  const fs = process.getBuiltinModule('node:fs');
  try {
    const target = fs.realpathSync(`${root}/${path}`);
    const { sep } = process.getBuiltinModule('node:path');
    if (target !== root && !target.startsWith(root.endsWith(sep) ? root : root + sep)) {
      problems.add(path, 'is a symbolic link out of the folder');
      return undefined;
    }
    const stats = fs.statSync(target);
    if (stats.isFile()) return { path };
    if (!stats.isDirectory()) problems.add(path, `is a symbolic link to ${kindOf(stats)}`);
    else if (chain.includes(target)) problems.add(path, 'is a symbolic link to a folder that it is in');
    else if (isKept(true)) return { path, chain: [...chain, target] };
  } catch (error) {
    problems.add(path, `is a symbolic link that cannot be followed (${codeOf(error)})`);
  }
  return undefined;
}

/** The names that are not UTF-8: as they are decoded, and with the bytes beyond ASCII in hex. */
function findMalformed({ root, path }: Folder): { decoded: string; shown: string }[] {
  const fs = process.getBuiltinModule('node:fs');
  const names = fs.readdirSync(path === '' ? root : `${root}/${path}`, { encoding: 'buffer' });
  return names
    .filter((name) => !Buffer.from(name.toString()).equals(name))
    .map((name) => ({
      decoded: name.toString(),
      shown: name
        .toString('latin1')
        .replace(/[\x80-\xff]/g, (byte) => `\\x${byte.charCodeAt(0).toString(16)}`),
    }));
}

function below(folder: string, name: string): string {
  return folder === '' ? name : `${folder}/${name}`;
}

function join(parent: string | undefined, name: string): string {
  return process.getBuiltinModule('node:path').join(parent ?? '', name);
}

function kindOf(entry: Pick<Dirent, 'isFIFO' | 'isSocket' | 'isBlockDevice' | 'isCharacterDevice'>): string {
  if (entry.isFIFO()) return 'a named pipe';
  if (entry.isSocket()) return 'a socket';
  return entry.isBlockDevice() || entry.isCharacterDevice() ? 'a device' : 'something else';
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error);
}
