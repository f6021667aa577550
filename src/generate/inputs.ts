import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { filesIn } from './files-in.js';

/** What something is made of, as paths from `root`, and the file that keeps the hash of it. */
type Inputs = { root: string; stamp: string; folders: readonly string[]; files: readonly string[] };

/** Calls `make` unless nothing that its result is made of has changed since it was called last. */
export async function makeIfChanged(inputs: Inputs, make: () => Promise<void>): Promise<void> {
  const { root, stamp } = inputs;
  const path = join(root, stamp);
  const hash = hashOf(inputs);
  if (existsSync(path) && readFileSync(path, 'utf8') === hash) return;
  await make();
  writeFileSync(path, hash);
}

function hashOf({ root, folders, files }: Inputs): string {
  const hash = createHash('sha256');
  const paths = [
    ...folders.flatMap((folder) => filesIn(join(root, folder))),
    ...files.map((file) => join(root, file)),
  ];
  for (const path of paths.sort()) {
    hash
      .update(`${relative(root, path)}\0`)
      .update(readFileSync(path))
      .update('\0');
  }
  return hash.digest('hex');
}
