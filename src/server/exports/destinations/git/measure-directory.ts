import type { Dirent } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** The bytes of all files below a directory. Another process may change it meanwhile: what has gone counts nothing. */
export async function measureDirectory(path: string): Promise<number> {
  const entries = await readdir(path, { withFileTypes: true }).catch((): Dirent[] => []);
  let bytes = 0;
  for (const entry of entries) {
    const child = join(path, entry.name);
    if (entry.isDirectory()) bytes += await measureDirectory(child);
    else
      bytes += await lstat(child).then(
        ({ size }) => size,
        () => 0,
      );
  }
  return bytes;
}
