/** Finds the objects and manifests of a downloaded export. */
import type { Dirent } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { MANIFEST_NAME } from '../../proof/export/manifest.js';
import { errnoReason } from '../input/input-file.js';
import type { ExportProblem } from './tally.js';

/** A file to verify. `name` is its path as shown: below the given directory, or as given. */
export type ExportFile = { readonly path: string; readonly name: string };

/** The files of one folder: a day of an export. `name` is relative to the given directory, '' for itself. */
export type ExportFolder = {
  readonly name: string;
  readonly manifest: ExportFile | undefined;
  readonly objects: readonly ExportFile[];
  /** Paths that cannot be read, or are not followed. */
  readonly problems: readonly ExportProblem[];
};

const OBJECT = /\.jsonl(?:\.gz)?$/;

/** Whether a file of this name is an object: JSON Lines, as they are or compressed with gzip. */
export function isObject(name: string): boolean {
  return OBJECT.test(name);
}

/** Whether a file of this name is a manifest. */
export function isManifest(name: string): boolean {
  return basename(name) === MANIFEST_NAME;
}

/** The folders with exported files at any depth, in order of their names. Ignores hidden ones and other files. */
export async function* walkFolders(directory: string): AsyncGenerator<ExportFolder> {
  const open = [''];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    const problems: ExportProblem[] = [];
    const entries = await readEntries(join(directory, name), name, problems);
    const fileOf = (entry: Dirent): ExportFile => ({
      path: join(directory, name, entry.name),
      name: shownName(name, entry.name),
    });
    const files = entries.filter((entry) => entry.isFile());
    const manifest = files.find((entry) => isManifest(entry.name));
    const objects = files.filter((entry) => isObject(entry.name)).map(fileOf);
    for (const entry of entries) {
      const reason = reasonToSkip(entry);
      if (reason !== undefined) problems.push(skipped(fileOf(entry).name, reason));
    }
    if (manifest !== undefined || objects.length > 0 || problems.length > 0) {
      yield { name, manifest: manifest && fileOf(manifest), objects, problems };
    }
    const folders = entries
      .filter((entry) => entry.isDirectory())
      .map((entry) => shownName(name, entry.name));
    open.push(...folders.reverse());
  }
}

/** Total size of all objects and manifests, in bytes; those that cannot be read count 0. */
export async function sizeOfAll(directory: string): Promise<number> {
  let total = 0;
  for await (const { manifest, objects } of walkFolders(directory)) {
    for (const { path } of [...(manifest ? [manifest] : []), ...objects]) {
      total += await stat(path).then(
        ({ size }) => size,
        () => 0,
      );
    }
  }
  return total;
}

async function readEntries(path: string, name: string, problems: ExportProblem[]): Promise<Dirent[]> {
  try {
    const entries = await readdir(path, { withFileTypes: true });
    return entries.filter((entry) => !entry.name.startsWith('.')).sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    problems.push(skipped(name || path, `the folder cannot be read: ${errnoReason(error as Error)}`));
    return [];
  }
}

/** Why an entry is not looked at; undefined for files and folders. */
function reasonToSkip(entry: Dirent): string | undefined {
  if (entry.isFile() || entry.isDirectory()) return undefined;
  if (entry.isSymbolicLink()) return 'it is a symbolic link, which is not followed';
  if (entry.isFIFO()) return 'it is a named pipe, which is not read';
  return 'it is a socket or device, which is not read';
}

function shownName(folder: string, name: string): string {
  return folder === '' ? name : `${folder}/${name}`;
}

function skipped(file: string, reason: string): ExportProblem {
  return { file, reason, verdict: 'could_not_check' };
}
