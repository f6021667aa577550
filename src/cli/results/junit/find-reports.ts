/** The reports that --junit names. */
import { readdir } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { matchPatterns } from '../../../client/files/ignore-file.js';
import { UsageError } from '../../cli.js';
import { errnoReason } from '../../input/input-file.js';
import { isFolder } from '../../sets/folder-files.js';

const PATTERN = /[*?[]/;

/** Folders that a pattern does not look into, unless it names them. */
const UNSEARCHED = new Set(['node_modules', '.git']);

/**
 * The paths of the reports that these values name, each once: files, folders, whose TEST-*.xml they are or else all *.xml, also
 * in folders below, and patterns by the rules of .gitignore. A file need not exist. Throws UsageError if a folder cannot be read.
 */
export async function findReports(given: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const value of given) {
    if (isFolder(value)) found.push(...(await reportsIn(value)));
    else if (PATTERN.test(value)) found.push(...(await matching(value)));
    else found.push(value);
  }
  return [...new Map(found.map((path) => [resolve(path), path])).values()];
}

/** Whether a value can name several reports. */
export function isPlural(value: string): boolean {
  return PATTERN.test(value) || isFolder(value);
}

/** The folders that these values name: of a file its own, of a pattern that before its first part with a wildcard. */
export function foldersOf(given: readonly string[]): string[] {
  return given.map((value) => {
    if (isFolder(value)) return value;
    return PATTERN.test(value) ? splitPattern(value).folder : dirname(value);
  });
}

async function reportsIn(folder: string): Promise<string[]> {
  const reports = (await walk(folder)).filter((path) => path.endsWith('.xml'));
  // Maven's plugins write other XML beside their reports.
  const named = reports.filter((path) => basename(path).startsWith('TEST-'));
  return (named.length > 0 ? named : reports).map((path) => join(folder, path));
}

async function matching(pattern: string): Promise<string[]> {
  const { folder, rest } = splitPattern(pattern);
  if (!isFolder(folder)) return [];
  const matches = matchPatterns([`/${rest}`]);
  return (await walk(folder)).filter((path) => matches(path)).map((path) => join(folder, path));
}

function splitPattern(pattern: string): { folder: string; rest: string } {
  const parts = pattern.split('/');
  const first = parts.findIndex((part) => PATTERN.test(part));
  const folder = first === 0 ? '.' : parts.slice(0, first).join('/') || '/';
  return { folder, rest: parts.slice(first).join('/') };
}

/** The files in a folder and those below, in the order of their names. */
async function walk(folder: string, below = ''): Promise<string[]> {
  const entries = await readdir(join(folder, below), { withFileTypes: true }).catch((error: Error) => {
    throw new UsageError(`${join(folder, below)} cannot be read: ${errnoReason(error)}`);
  });
  const paths: string[] = [];
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = below === '' ? entry.name : `${below}/${entry.name}`;
    if (entry.isDirectory()) {
      if (!UNSEARCHED.has(entry.name)) paths.push(...(await walk(folder, path)));
    } else if (entry.isFile()) paths.push(path);
  }
  return paths;
}
