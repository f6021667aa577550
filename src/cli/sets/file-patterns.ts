/** Which files of a folder are hashed. */
import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import {
  IGNORE_FILE,
  MAX_IGNORE_BYTES,
  matchIgnoreFile,
  matchPatterns,
} from '../../client/files/ignore-file.js';
import { readInputFile } from '../input/input-file.js';

/** What is hashed of a folder. */
type Selection = {
  /** Only files that match one of these; all by default. */
  readonly include?: readonly string[] | undefined;
  /** No files or folders that match one of these. */
  readonly exclude?: readonly string[] | undefined;
  /** No files that this says of their paths. */
  readonly isOmitted?: ((path: string) => boolean) | undefined;
};

/**
 * Creates the filter of a folder's files: by the selection, and the patterns in the folder's `.attestignore`. Throws
 * UsageError if that file cannot be read.
 */
export async function selectFiles(
  folder: string,
  { include, exclude = [], isOmitted = () => false }: Selection,
): Promise<(path: string, isFolder: boolean) => boolean> {
  const ignored = await readIgnoreFile(folder);
  const isIncluded = include === undefined ? () => true : matchPatterns(include);
  const isExcluded = exclude.length === 0 ? () => false : matchPatterns(exclude);
  const isIgnored = ignored === undefined ? () => false : matchIgnoreFile(ignored);
  return (path, isFolder) => {
    const name = isFolder ? `${path}/` : path;
    if (isOmitted(path) || isExcluded(name)) return false;
    return !isIgnored(name) && (isFolder || isIncluded(name));
  };
}

async function readIgnoreFile(folder: string): Promise<string | undefined> {
  const file = join(folder, IGNORE_FILE);
  const found = await lstat(file).catch(() => undefined);
  if (!found?.isFile()) return undefined;
  return Buffer.from(await readInputFile(file, 'patterns', MAX_IGNORE_BYTES)).toString();
}
