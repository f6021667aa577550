import { existsSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { filesIn } from '../files-in.js';

/** Lists the files that differ in two folders, sorted, each with the difference of the one in `actual`. */
export function compareFolders({ expected, actual }: { expected: string; actual: string }): string[] {
  const paths = new Set([expected, actual].flatMap((top) => filesIn(top).map((path) => relative(top, path))));
  return [...paths].sort().flatMap((path) => {
    if (!existsSync(join(actual, path))) return [`${path} is missing`];
    if (!existsSync(join(expected, path))) return [`${path} is left over`];
    const isAlike = readFileSync(join(expected, path)).equals(readFileSync(join(actual, path)));
    return isAlike ? [] : [`${path} differs`];
  });
}
