import { hashArtifact } from '../../../client/hash.js';
import { FormatError } from '../../../proof/bytes/format-error.js';
import { compareFiles, type PresentFile } from '../../../proof/set/compare-files.js';
import { addFinding, type FolderTally, startTally } from '../../../proof/set/folder-tally.js';
import { readSet, type SetSummary } from '../../../proof/set/read-set.js';
import { SetError } from '../../../proof/set/set-error.js';
import type { GivenBundle, GivenSet } from '../inputs/input-files.js';
import { readPieces } from '../inputs/read-pieces.js';
import type { GivenFolder } from './hash-folder.js';

/** What came of comparing a folder with a set. */
export type ComparedFolder = {
  readonly folder: GivenFolder;
  readonly tally: FolderTally;
  /** The first paths that are in order. */
  readonly ok: readonly string[];
  readonly summary: SetSummary;
  /** Paths of the set file and the bundle themselves in the folder, which are not counted. */
  readonly evidence: readonly string[];
};

/** How many paths of a kind are shown. */
const MAX_SHOWN = 20;

/** About 1,000 entries, which take longer than as many bytes of a file. */
const PIECE_BYTES = 256 * 1024;

/**
 * Compares in one pass over the set; undefined if the set cannot be read, which verification says better. Throws the
 * signal's reason, and what the browser throws of a file.
 */
export async function compareFolder(
  { folder, set, bundle }: { folder: GivenFolder; set: GivenSet; bundle: GivenBundle },
  signal: AbortSignal,
): Promise<ComparedFolder | undefined> {
  const tally = startTally();
  const ok: string[] = [];
  const evidence: string[] = [];
  const given = [set.file, new Blob([new Uint8Array(bundle.bytes)])];
  const isEvidence = await findEvidence(folder.files, given, signal);
  try {
    const { items, finish } = readSet(readSetFile(set, signal));
    for await (const finding of compareFiles(items, folder.files)) {
      if (finding.status === 'extra' && isEvidence(finding.path)) evidence.push(finding.path);
      else addFinding(tally, finding, MAX_SHOWN);
      if (finding.status === 'ok' && ok.length < MAX_SHOWN) ok.push(finding.path);
    }
    return { folder, tally, ok, summary: await finish(), evidence };
  } catch (error) {
    if (error instanceof SetError) return undefined;
    throw error;
  }
}

/** Reads a set file. Throws FormatError if the browser cannot; the signal's reason. */
export async function* readSetFile(
  { name, file }: GivenSet,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  try {
    yield* readPieces(file, signal, PIECE_BYTES);
  } catch {
    signal.throwIfAborted();
    throw new FormatError(`${name} cannot be read. Was it moved or changed meanwhile?`);
  }
}

/** Finds the files that are, byte for byte, what the folder is compared with. */
async function findEvidence(
  files: readonly PresentFile[],
  given: readonly Blob[],
  signal: AbortSignal,
): Promise<(path: string) => boolean> {
  const alike = given.filter(({ size }) => files.some(({ bytes }) => bytes === size));
  const digests = await Promise.all(alike.map((blob) => hashArtifact(readPieces(blob, signal))));
  const paths = files.filter(({ sha256 }) => digests.includes(sha256)).map(({ path }) => path);
  return (path) => paths.includes(path);
}
