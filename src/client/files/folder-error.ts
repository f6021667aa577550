/** Files that a set cannot have, all of them together. */
import { printablePath } from '../../proof/set/path.js';

/** A file that cannot be taken: its path in printable form, and what is wrong, as in `is a symbolic link`. */
export type FolderProblem = { readonly path: string; readonly message: string };

/** How many problems are kept; more are counted. */
const MAX_KEPT = 50;

/** Files of a folder that cannot be hashed. The message names them, a line each, and counts those beyond the first 50. */
export class FolderError extends Error {
  override readonly name = 'FolderError';

  constructor(
    readonly problems: readonly FolderProblem[],
    /** How many there are, also beyond `problems`. */
    readonly count: number,
  ) {
    const lines = problems.map(({ path, message }) => `  ${path} ${message}`);
    const more = count > problems.length ? [`  and ${count - problems.length} more`] : [];
    const files = count === 1 ? '1 file cannot be hashed' : `${count} files cannot be hashed`;
    super([`${files}:`, ...lines, ...more].join('\n'));
  }
}

/** Gathers problems. */
export type Problems = {
  /** Adds one; the path may have any characters. */
  add(path: string, message: string): void;
  count(): number;
  /** Throws FolderError if there is a problem. */
  throwIfAny(): void;
};

/** Starts to gather problems; the first 50 are kept. */
export function gatherProblems(): Problems {
  const kept: FolderProblem[] = [];
  let count = 0;
  return {
    add: (path, message) => {
      count++;
      if (kept.length < MAX_KEPT) kept.push({ path: printablePath(path), message });
    },
    count: () => count,
    throwIfAny: () => {
      if (count > 0) throw new FolderError(kept, count);
    },
  };
}
