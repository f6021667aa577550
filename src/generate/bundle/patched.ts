import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Throws if a package at `root` lacks a patch of `folder` that `npm ci` applies: each hunk's lines, with those that it adds
 * and without those that it removes, must be in the installed file. An installation with `--ignore-scripts` lacks all.
 */
export function assertPatched(root: string, folder: string): void {
  for (const patch of readdirSync(join(root, folder))) {
    for (const { file, text } of listHunks(readFileSync(join(root, folder, patch), 'utf8'))) {
      if (!readFileSync(join(root, file), 'utf8').includes(text)) {
        throw new Error(
          `${file} lacks ${patch}, with which the service survives lost connections: run npm ci`,
        );
      }
    }
  }
}

/** The hunks of a unified diff: the file of each, and its lines after the change. */
function listHunks(diff: string): { file: string; text: string }[] {
  return diff.split(/^diff --git /m).flatMap((part) => {
    const [, file] = /^\+\+\+ b\/(.+)$/m.exec(part) ?? [];
    if (file === undefined) return [];
    const hunks = part.split(/^@@ .*\n/m).slice(1);
    return hunks.map((hunk) => ({ file, text: readAfter(hunk) }));
  });
}

function readAfter(hunk: string): string {
  const kept = hunk.split('\n').filter((line) => line.startsWith(' ') || line.startsWith('+'));
  return kept.map((line) => line.slice(1)).join('\n');
}
