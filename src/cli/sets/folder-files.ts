/** The files of a folder that a command hashes. */
import { realpathSync, statSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, relative, sep } from 'node:path';
import type { Command } from 'commander';
import { hashFiles } from '../../client/files/hash-files.js';
import { listFiles } from '../../client/files/list-files.js';
import type { PresentFile } from '../../proof/set/compare-files.js';
import type { Cli } from '../cli.js';
import { formatSize, openProgress, type Progress } from '../output/progress.js';
import { selectFiles } from './file-patterns.js';
import { isOutput } from './set-file.js';

/** Flags that choose the files of a folder. */
export type FolderFlags = { include?: string[]; exclude?: string[]; followSymlinks?: boolean };

/** Help text about them. */
export const FOLDER_HELP = `
Of a folder all files count, also hidden ones, without those that .attestignore in it names (rules of .gitignore). --include
and --exclude take such patterns, too. Symbolic links, sockets, devices, unreadable files and names that are not UTF-8 are
errors, listed before anything is done; --follow-symlinks follows links inside the folder.`;

/** How the names of bundles of files end, in a folder of them. */
export const BUNDLE_ENDING = '.bundle.json';

/** Adds the flags. */
export function addFolderFlags(command: Command): Command {
  return command
    .option('--include <pattern>', 'only files of the folder that match; repeatable', collectPattern)
    .option('--exclude <pattern>', 'no files or folders that match; repeatable', collectPattern)
    .option('--follow-symlinks', 'follow symbolic links whose target is inside the folder');
}

/** Collects the values of a repeatable flag. */
export function collectPattern(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

/** Whether the path is one of a folder. */
export function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/**
 * Lists the files of a folder that the flags choose, by their paths in it; no bundles that are in `bundles`, a folder anywhere.
 * Throws as listFiles does.
 */
export async function listFolderFiles(
  folder: string,
  { bundles, ...flags }: FolderFlags & { bundles?: string },
  signal?: AbortSignal,
): Promise<string[]> {
  const inside = bundles === undefined ? undefined : findInside(folder, bundles);
  const prefix = inside === '' ? '' : `${inside}/`;
  const isOmitted = (path: string) =>
    inside !== undefined && path.startsWith(prefix) && path.endsWith(BUNDLE_ENDING);
  const filter = await selectFiles(folder, { ...flags, isOmitted });
  return await listFiles(folder, { filter, followSymlinks: flags.followSymlinks, signal });
}

/**
 * Hashes the files of a folder that the flags choose, but none of the `outputs`, which are paths of files anywhere. Shows
 * progress on standard error. Throws as hashFiles does.
 */
export async function* readFolder(
  cli: Cli,
  folder: string,
  { flags, outputs, signal }: { flags: FolderFlags; outputs: readonly string[]; signal?: AbortSignal },
): AsyncGenerator<PresentFile> {
  const inside = outputs.flatMap((path) => findInside(folder, path) ?? []);
  const isOmitted = (path: string) => inside.some((output) => isOutput(path, output));
  const filter = await selectFiles(folder, { ...flags, isOmitted });
  const startedAt = cli.now().getTime();
  let [read, hashed, total] = [0, 0, 0];
  let progress: Progress | undefined;
  const tail = () => {
    const seconds = Math.max((cli.now().getTime() - startedAt) / 1000, 0.001);
    const left = Math.ceil((seconds / Math.max(hashed, 1)) * (total - hashed));
    return ` files, ${formatSize(read)}, ${formatSize(Math.round(read / seconds))}/s, ${left} s left`;
  };
  const onListed = (files: number) => {
    total = files;
    const shown = { output: cli.stderr, now: () => cli.now().getTime() };
    progress = openProgress(shown, 'hashing', files, String, tail);
  };
  const onBytes = (bytes: number) => {
    read += bytes;
    progress?.add(0);
  };
  const { followSymlinks } = flags;
  try {
    for await (const file of hashFiles(folder, { filter, followSymlinks, signal, onListed, onBytes })) {
      hashed++;
      progress?.add(1);
      yield file;
    }
  } finally {
    progress?.clear();
  }
}

/** The path of a file in a folder, as a set has it; undefined if it is elsewhere. The file need not exist. */
export function findInside(folder: string, path: string): string | undefined {
  try {
    const real = join(realpathSync(dirname(path)), basename(path));
    const inside = relative(realpathSync(folder), real);
    return inside.startsWith('..') || isAbsolute(inside) ? undefined : inside.split(sep).join('/');
  } catch {
    return undefined;
  }
}
