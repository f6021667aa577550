/** Lists folders of the repository, and says which of them hold too much. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Sources by their path from the repository's root, as in `src/server/http/server.ts`. */
export type Sources = Readonly<Record<string, string>>;

const MAX_FILES = 20;

/** A list in the order of its numbers is read as a list, and a migration's name is its identity in the database. */
const LISTS = ['src/server/database/migrations'];

/** The folders with more than 20 files directly in them, whatever their kind, each with the number. */
export function findCrowdedFolders(paths: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const path of paths) counts.set(posix.dirname(path), (counts.get(posix.dirname(path)) ?? 0) + 1);
  return [...counts]
    .filter(([folder, count]) => count > MAX_FILES && !LISTS.includes(folder))
    .map(([folder, count]) => `${folder} has ${count} files, more than ${MAX_FILES}`);
}

/** The files below a folder of the repository, by their path from its root. */
export function listFiles(folder: string): string[] {
  const root = findRoot();
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).split(sep).join('/'));
}

/** The sources below a folder of the repository, whether this runs from them or from what was compiled of them. */
export function readSources(folder = 'src'): Sources {
  const root = findRoot();
  const paths = listFiles(folder).filter((path) => /\.tsx?$/.test(path));
  return Object.fromEntries(paths.map((path) => [path, readFileSync(join(root, path), 'utf8')]));
}

/** The repository's root. */
export function findRoot(): string {
  let root = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(root, 'package.json'))) root = dirname(root);
  return root;
}
