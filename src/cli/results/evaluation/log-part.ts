/** What a log is made of. */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { findPathProblem } from '../../../proof/set/path.js';
import { UsageError } from '../../cli.js';

/** A file of the set that is made of a log: a sample, or a file of the log itself. */
export type LogPart = {
  /** Its path in the set. */
  readonly path: string;
  /** Its bytes, as the log has them. */
  readonly pieces: () => AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
};

/** Called with each part in the order of the log. It reads the part before it returns, or leaves it out. */
export type Visit = (part: LogPart) => Promise<void>;

/**
 * The path of a sample: `samples/<name>.json`. A name with which that is no path of a set is percent-encoded as
 * encodeURIComponent does, as is one that has a percent sign, so that no two names have one path.
 */
export function samplePath(name: string): string {
  const path = `samples/${name}.json`;
  if (!name.includes('%') && findPathProblem(path) === undefined) return path;
  if (/\p{Surrogate}/u.test(name)) throw new UsageError('the log has a sample whose id is not Unicode');
  return `samples/${encodeURIComponent(name)}.json`;
}

/** Visits a file of the log itself. Throws UsageError if the file changes meanwhile. */
export async function visitFile(file: string, visit: Visit): Promise<void> {
  const before = await stat(file);
  await visit({ path: encodeName(basename(file)), pieces: () => createReadStream(file) });
  const { size, mtimeMs } = await stat(file);
  if (size !== before.size || mtimeMs !== before.mtimeMs)
    throw new UsageError(`${file} changed while it was read: attest it when the evaluation has ended`);
}

function encodeName(name: string): string {
  return findPathProblem(name) === undefined ? name : encodeURIComponent(name);
}
