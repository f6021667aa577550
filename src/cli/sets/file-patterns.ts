/** Patterns of files, by the rules of .gitignore. */
import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import ignore from 'ignore';
import { readInputFile } from '../input/input-file.js';

/** The file in a folder with patterns of what is left out. */
const IGNORE_FILE = '.attestignore';

const MAX_IGNORE_BYTES = 1024 * 1024;

/** Creates the test whether a path matches one of these patterns; of a folder the path ends with a slash. */
export function matchPatterns(patterns: readonly string[]): (path: string) => boolean {
  const rules = ignore({ ignorecase: false }).add(patterns);
  return (path) => rules.ignores(path);
}

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
 * Creates the filter of a folder's files: by the selection, and the patterns in the folder's `.attestignore`, which cannot
 * leave out that file itself, so that a set shows it. Throws UsageError if that file cannot be read.
 */
export async function selectFiles(
  folder: string,
  { include, exclude = [], isOmitted = () => false }: Selection,
): Promise<(path: string, isFolder: boolean) => boolean> {
  const ignored = await readIgnoreFile(folder);
  const isIncluded = include === undefined ? () => true : matchPatterns(include);
  const isExcluded = exclude.length === 0 ? () => false : matchPatterns(exclude);
  const isIgnored = ignored === undefined ? () => false : matchPatterns(ignored.split(/\r?\n/));
  return (path, isFolder) => {
    const name = isFolder ? `${path}/` : path;
    if (isOmitted(path) || isExcluded(name)) return false;
    if (isFolder) return !isIgnored(name);
    return isIncluded(name) && (path === IGNORE_FILE || !isIgnored(name));
  };
}

async function readIgnoreFile(folder: string): Promise<string | undefined> {
  const file = join(folder, IGNORE_FILE);
  const found = await lstat(file).catch(() => undefined);
  if (!found?.isFile()) return undefined;
  return Buffer.from(await readInputFile(file, 'patterns', MAX_IGNORE_BYTES)).toString();
}
