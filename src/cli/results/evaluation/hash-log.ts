/** Hashes the parts of an evaluation's log for a set. */
import type { JsonObject } from '@bufbuild/protobuf';
import { hashArtifact } from '../../../client/hash.js';
import type { PresentFile } from '../../../proof/set/compare-files.js';
import { MAX_ENTRIES } from '../../../proof/set/entry.js';
import { comparePaths, printablePath } from '../../../proof/set/path.js';
import { UsageError } from '../../cli.js';
import type { LogPart } from './log-part.js';
import { readEvaluation } from './read-evaluation.js';

/** A log's metadata, and its parts in the order of their paths. */
type HashedLog = { readonly metadata: JsonObject; readonly files: readonly PresentFile[] };

type Hashing = {
  readonly signal: AbortSignal;
  /** Called with the size of all parts, about, before they are read. */
  readonly onTotal?: (bytes: number) => void;
  readonly onBytes: (bytes: number) => void;
};

/**
 * Reads and hashes a log. `onBytes` is called with the size of each piece. Throws UsageError as readEvaluation does, and if
 * two parts have one path or there are more than a set holds.
 */
export async function hashLog(log: string, { signal, onTotal, onBytes }: Hashing): Promise<HashedLog> {
  const files: PresentFile[] = [];
  const visit = async ({ path, pieces }: LogPart) => {
    signal.throwIfAborted();
    if (files.length === MAX_ENTRIES) throw new UsageError(`the log has more than ${MAX_ENTRIES} parts`);
    let bytes = 0;
    const counted = async function* () {
      for await (const piece of pieces()) {
        signal.throwIfAborted();
        bytes += piece.length;
        onBytes(piece.length);
        yield piece;
      }
    };
    const sha256 = await hashArtifact(counted());
    files.push({ path, bytes, sha256 });
  };
  const metadata = await readEvaluation(log, visit, onTotal);
  files.sort((a, b) => comparePaths(a.path, b.path));
  for (const [i, { path }] of files.entries()) {
    if (files[i + 1]?.path === path)
      throw new UsageError(`the log has two samples by the name ${printablePath(path)}`);
  }
  return { metadata, files };
}
