import type { SetEntry } from './entry.js';
import { comparePaths, printablePath } from './path.js';
import type { SetItem } from './read-set.js';

/** A file as it is now: SHA-256 in lower-case hex. */
export type PresentFile = Pick<SetEntry, 'path' | 'bytes' | 'sha256'>;

/**
 * One path of the set or of the files. `changed`: of another length or SHA-256. `extra`: no entry that is shown has it; one
 * that is withheld may. A withheld entry has no path, only its index.
 */
export type FileFinding =
  | { readonly status: 'ok' | 'changed' | 'missing' | 'extra'; readonly path: string }
  | { readonly status: 'withheld'; readonly index: number };

/**
 * Compares the entries of a set with files, which come in the order of comparePaths. Yields each finding once, in that
 * order; holds one entry and one file. Nothing is proven until the set's `finish` returns. Throws what reading throws, and
 * an Error if the files are not in order.
 */
export async function* compareFiles(
  items: AsyncIterable<SetItem>,
  files: AsyncIterable<PresentFile> | Iterable<PresentFile>,
): AsyncGenerator<FileFinding> {
  const present = inOrder(files);
  let file = await next(present);
  for await (const { entry, index } of items) {
    if (entry === undefined) {
      yield { status: 'withheld', index };
      continue;
    }
    while (file !== undefined && comparePaths(file.path, entry.path) < 0) {
      yield { status: 'extra', path: file.path };
      file = await next(present);
    }
    if (file?.path !== entry.path) {
      yield { status: 'missing', path: entry.path };
      continue;
    }
    const isSame = file.bytes === entry.bytes && file.sha256 === entry.sha256;
    yield { status: isSame ? 'ok' : 'changed', path: entry.path };
    file = await next(present);
  }
  for (; file !== undefined; file = await next(present)) yield { status: 'extra', path: file.path };
}

async function* inOrder(
  files: AsyncIterable<PresentFile> | Iterable<PresentFile>,
): AsyncGenerator<PresentFile, undefined> {
  let last: string | undefined;
  for await (const file of files) {
    if (last !== undefined && comparePaths(last, file.path) >= 0) {
      throw new Error(`the files are not in order at ${printablePath(file.path)}`);
    }
    last = file.path;
    yield file;
  }
}

async function next(files: AsyncGenerator<PresentFile, undefined>): Promise<PresentFile | undefined> {
  return (await files.next()).value;
}
