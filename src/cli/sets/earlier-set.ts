/** The set file of a run that ended before its submission was made, or witnessed. */
import type { SetHead } from '../../proof/set/head.js';
import { comparePaths } from '../../proof/set/path.js';
import { readSet } from '../../proof/set/read-set.js';
import { SetError } from '../../proof/set/set-error.js';
import { UsageError } from '../cli.js';
import { openSet } from './set-file.js';

/** A set that was written before. */
export type EarlierSet = {
  readonly head: SetHead;
  readonly headSha256: string;
  /** The salt of the entry at a path, if there is one. Paths are asked for in their order. */
  takeSalt(path: string): Promise<string | undefined>;
};

/**
 * Reads a set file, whose head then follows again from the same files. Throws UsageError if it is no set. Its entries are
 * read a second time as salts are taken, so none are held.
 */
export async function readEarlierSet(file: string): Promise<EarlierSet> {
  const { head, headSha256 } = await readSet(await openSet(file))
    .finish()
    .catch((error: unknown) => {
      if (!(error instanceof SetError)) throw error;
      throw new UsageError(`${file} is no set file (${error.message}): --force overwrites it`);
    });
  const items = readSet(await openSet(file)).items[Symbol.asyncIterator]();
  let next = await items.next();
  const isBefore = (path: string) => {
    if (next.done) return false;
    const { entry } = next.value;
    return entry === undefined || comparePaths(entry.path, path) < 0;
  };
  return {
    head,
    headSha256,
    takeSalt: async (path) => {
      while (isBefore(path)) next = await items.next();
      const entry = next.done ? undefined : next.value.entry;
      return entry?.path === path ? entry.salt : undefined;
    },
  };
}
