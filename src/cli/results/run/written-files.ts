/** What a command wrote: files that are new or changed since before it ran. */
import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { hashFiles } from '../../../client/files/hash-files.js';
import type { PresentFile } from '../../../proof/set/compare-files.js';
import { selectFiles } from '../../sets/file-patterns.js';
import { type FolderFlags, isFolder, listFolderFiles } from '../../sets/folder-files.js';

/** Files by their absolute paths, with what changes when one is written. */
export type Snapshot = ReadonlyMap<string, string>;

/** A file with its path, relative to the working folder or absolute as the folder was given; and that folder. */
export type WrittenFile = PresentFile & { readonly file: string; readonly folder: string };

/** Notes the state of the files of these folders that the flags choose. A folder need not exist. Throws as listFiles does. */
export async function takeSnapshot(folders: readonly string[], flags: FolderFlags): Promise<Snapshot> {
  const files: string[] = [];
  for (const folder of folders.filter(isFolder)) {
    for (const path of await listFolderFiles(folder, flags)) files.push(join(folder, path));
  }
  return noteFiles(files);
}

/** Notes the state of these files. One need not exist. */
export async function noteFiles(files: readonly string[]): Promise<Snapshot> {
  const states = new Map<string, string>();
  for (const file of files) {
    const found = await stat(file, { bigint: true }).catch(() => undefined);
    if (found === undefined) continue;
    const { ino, size, mtimeNs, ctimeNs } = found;
    states.set(resolve(file), [ino, size, mtimeNs, ctimeNs].join());
  }
  return states;
}

/** Whether each of these files is not as it was: the paths of those that are new or changed. */
export async function findWritten(files: readonly string[], before: Snapshot): Promise<string[]> {
  const now = await noteFiles(files);
  return files.filter((file) => now.get(resolve(file)) !== before.get(resolve(file)));
}

/**
 * Hashes the files of a folder that are new or changed, but none of `omitted`. Yields nothing if there is no such folder.
 * Throws as hashFiles does.
 */
export async function* hashWritten(
  folder: string,
  before: Snapshot,
  { flags, omitted, signal }: { flags: FolderFlags; omitted: readonly string[]; signal: AbortSignal },
): AsyncGenerator<WrittenFile> {
  if (!isFolder(folder)) return;
  const files = (await listFolderFiles(folder, flags, signal)).map((path) => join(folder, path));
  const written = new Set((await findWritten(files, before)).map((file) => resolve(file)));
  for (const file of omitted) written.delete(resolve(file));
  const isChosen = await selectFiles(folder, flags);
  const { followSymlinks } = flags;
  const filter = (path: string, isFolder: boolean) =>
    isChosen(path, isFolder) && (isFolder || written.has(resolve(folder, path)));
  for await (const found of hashFiles(folder, { filter, followSymlinks, signal })) {
    yield { ...found, file: join(folder, found.path), folder };
  }
}
