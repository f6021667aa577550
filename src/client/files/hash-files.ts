import type { PresentFile } from '../../proof/set/compare-files.js';
import { checkOptions, FUNCTION, type OptionCheck, type OptionChecks, SIGNAL } from '../input/options.js';
import { gatherProblems } from './folder-error.js';
import { hashAll } from './hash-pool.js';
import { type ListOptions, listFiles } from './list-files.js';

export type HashFilesOptions = ListOptions & {
  /** Called with the number of files, once it is known, before the first is hashed. */
  readonly onListed?: ((files: number) => void) | undefined;
  /** Called with the number of bytes read since the last call. */
  readonly onBytes?: ((bytes: number) => void) | undefined;
};

const BOOLEAN: OptionCheck = {
  isRight: (value) => typeof value === 'boolean',
  expected: 'true or false',
};

const OPTIONS: OptionChecks<HashFilesOptions> = {
  filter: FUNCTION,
  followSymlinks: BOOLEAN,
  signal: SIGNAL,
  onListed: FUNCTION,
  onBytes: FUNCTION,
};

/**
 * Hashes the files in a folder and its folders on several threads, and yields them in the order of a set's entries (Node
 * only). Holds the paths, and few results. Throws FolderError with all links, special files, unreadable files and unsuitable
 * names; or with the files that changed or vanished meanwhile, after those before them; what listing throws; TypeError if an
 * option is wrong or this is not Node.
 */
export async function* hashFiles(
  folder: string,
  options: HashFilesOptions = {},
): AsyncGenerator<PresentFile> {
  checkOptions(options, OPTIONS);
  const fs = globalThis.process?.getBuiltinModule?.('node:fs');
  if (fs === undefined) throw new TypeError('a folder can be read in Node only');
  const { followSymlinks: follow = false, signal, onListed, onBytes = () => {} } = options;
  signal?.throwIfAborted();
  const files = await listFiles(folder, options);
  onListed?.(files.length);
  const problems = gatherProblems();
  const root = fs.realpathSync(folder);
  let at = 0;
  for await (const { bytes, sha256, problem } of hashAll({ root, files, follow, signal, onBytes })) {
    const path = files[at++]!;
    if (problem !== undefined) problems.add(path, problem);
    else if (problems.count() === 0) yield { path, bytes, sha256 };
  }
  problems.throwIfAny();
}
