/** Folders for tests of hashing. */
import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Test } from 'tap';
import type { PresentFile } from '../../../src/proof/set/compare-files.js';

/** Makes a folder with these files, in folders of their own; the content of a file is its path. */
export function makeFolder(t: Test, paths: readonly string[], dir: string = t.testdir()): string {
  for (const path of paths) {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), path);
  }
  return dir;
}

/** A folder with a short path that every user can enter. */
export function makePublicFolder(t: Test): string {
  const dir = mkdtempSync(join(tmpdir(), 'attest-'));
  t.teardown(() => rmSync(dir, { recursive: true }));
  chmodSync(dir, 0o755);
  return dir;
}

/** What hashing finds of a file whose content is its path. */
export function presentOf(path: string): PresentFile {
  const sha256 = createHash('sha256').update(path).digest('hex');
  return { path, bytes: Buffer.byteLength(path), sha256 };
}

/** The paths in the order of a set: by their bytes. */
export function sortedPaths(paths: readonly string[]): string[] {
  return [...paths].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
}

/** All that is yielded. */
export async function takeAll<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
