import { dirname, relative, resolve, sep } from 'node:path';

/** Creates the function that gives a file its path in a set: relative to the nearest folder that has all of these folders. */
export function pathsIn(folders: readonly string[]): (file: string) => string {
  const [first = '.', ...others] = folders.map((folder) => resolve(folder));
  let base = first;
  while (others.some((folder) => !isWithin(base, folder))) base = dirname(base);
  return (file) => relative(base, resolve(file)).split(sep).join('/');
}

function isWithin(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}
