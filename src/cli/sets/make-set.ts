/** Makes the set of a folder. */
import { randomBytes } from 'node:crypto';
import type { PresentFile } from '../../proof/set/compare-files.js';
import { createSet } from '../../proof/set/create-set.js';
import type { NotBefore, SetHead } from '../../proof/set/head.js';
import { UsageError } from '../cli.js';
import type { EarlierSet } from './earlier-set.js';
import { writeWhole } from './set-file.js';

/** A set that was written. `headSha256`, in hex, is to be attested; `bytes` are those of all files. */
export type WrittenSet = { readonly head: SetHead; readonly headSha256: string; readonly bytes: number };

const SALT_BYTES = 16;

/** A call for one salt takes 4 µs, a quarter of a set's time; one for so many takes 0.1 µs each. */
const SALTS_PER_CALL = 1024;

/** Yields random salts, in hex, without end. */
function* makeSalts(): Generator<string, never> {
  for (;;) {
    const hex = randomBytes(SALTS_PER_CALL * SALT_BYTES).toString('hex');
    for (let at = 0; at < hex.length; at += 2 * SALT_BYTES) yield hex.slice(at, at + 2 * SALT_BYTES);
  }
}

/** What a set has beside its files. */
type SetOptions = {
  readonly notBefore: NotBefore | undefined;
  /** The set of these files that was written before, whose salts are taken again. */
  readonly earlier?: EarlierSet | undefined;
  /** Whether it overwrites any file; by default only that of `earlier`. */
  readonly force?: boolean | undefined;
};

/**
 * Writes the set of files, which come in the order of their paths, to a file at `path`. Throws UsageError if there are no
 * files, it cannot be written, a file is in the way, or it would be another set than the earlier one; and what reading the files throws. Then what
 * was at `path` is unchanged.
 */
export async function writeSet(
  path: string,
  files: AsyncIterable<PresentFile>,
  { notBefore, earlier, force }: SetOptions,
): Promise<WrittenSet> {
  let written: WrittenSet | undefined;
  const text = async function* () {
    const set = createSet();
    const salts = makeSalts();
    let total = 0;
    let isEmpty = true;
    for await (const { path, bytes, sha256 } of files) {
      const salt = (await earlier?.takeSalt(path)) ?? salts.next().value;
      yield set.add({ path, bytes, sha256, salt });
      total += bytes;
      isEmpty = false;
    }
    if (isEmpty) throw new UsageError('the folder has no files to attest');
    const { text, head, headSha256 } = set.end(notBefore);
    if (earlier !== undefined && earlier.headSha256 !== headSha256) throw new UsageError(changed(path));
    written = { head, headSha256, bytes: total };
    yield text;
  };
  await writeWhole(path, text(), { isNew: !force && earlier === undefined });
  if (written === undefined) throw new Error('the set was not written to its end');
  return written;
}

function changed(path: string): string {
  return `${path} is another set: the folder or the flags have changed. Give another name, or --force to overwrite it`;
}
