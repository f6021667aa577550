import { IGNORE_FILE, MAX_IGNORE_BYTES, matchIgnoreFile } from '../../../client/files/ignore-file.js';
import { hashArtifact } from '../../../client/hash.js';
import { toHex } from '../../../proof/bytes/encoding.js';
import { FormatError } from '../../../proof/bytes/format-error.js';
import type { PresentFile } from '../../../proof/set/compare-files.js';
import { comparePaths, findPathProblem, printablePath } from '../../../proof/set/path.js';
import type { Report } from '../inputs/loading.js';
import { readPieces } from '../inputs/read-pieces.js';
import type { FolderFile, FolderSource } from './list-folder.js';

/** A folder as it was when it was given. */
export type GivenFolder = {
  readonly name: string;
  /** In the order of a set's entries. */
  readonly files: readonly PresentFile[];
  /** Number of files that `.attestignore` leaves out. */
  readonly ignored: number;
};

/** Files up to this length are hashed by the browser, a few at a time; longer ones in pieces. In bytes. */
const MAX_WHOLE_BYTES = 16 * 1024 * 1024;
const PARALLEL = 6;
const MAX_NAMED = 5;

/**
 * Hashes the files of a folder but those that `.attestignore` leaves out. Throws FormatError with the files that no set can
 * have or that cannot be read; the signal's reason.
 */
export async function hashFolder({ name, list }: FolderSource, report: Report): Promise<GivenFolder> {
  const listed = await list();
  const isIgnored = await readIgnoreFile(listed);
  const files = listed.filter(({ path }) => !isIgnored(path));
  files.sort((a, b) => comparePaths(a.path, b.path));
  checkPaths(files);
  return { name, files: await hashAll(files, report), ignored: listed.length - files.length };
}

async function readIgnoreFile(files: readonly FolderFile[]): Promise<(path: string) => boolean> {
  const found = files.find(({ path }) => path === IGNORE_FILE);
  if (found === undefined) return () => false;
  if (found.file.size > MAX_IGNORE_BYTES) throw new FormatError(`${IGNORE_FILE} is larger than 1 MiB.`);
  return matchIgnoreFile(await found.file.text());
}

function checkPaths(files: readonly FolderFile[]): void {
  const problems = files.flatMap(({ path }, i) => {
    const problem = path === files[i + 1]?.path ? 'occurs twice' : findPathProblem(path);
    return problem === undefined ? [] : [`“${printablePath(path)}” ${problem}`];
  });
  if (problems.length === 0) return;
  const more = problems.length > MAX_NAMED ? `, and ${problems.length - MAX_NAMED} more` : '';
  const named = problems.slice(0, MAX_NAMED).join(', ');
  throw new FormatError(`The folder has files with paths that no set can have: ${named}${more}.`);
}

async function hashAll(
  files: readonly FolderFile[],
  { signal, progress }: Report,
): Promise<readonly PresentFile[]> {
  const hashed: PresentFile[] = [];
  let [next, done, parts] = [0, 0, 0];
  const onPart = (part: number) => {
    parts += part;
    const detail = `${done.toLocaleString()} of ${files.length.toLocaleString()} files`;
    progress(Math.min(parts / files.length, 1), detail);
  };
  const hashSome = async () => {
    while (next < files.length) {
      const at = next++;
      hashed[at] = await hashFile(files[at]!, { signal, onPart });
      done++;
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, hashSome));
  return hashed;
}

/** `onPart` is called with the part of the file that was read since the last call. */
type Reading = { signal: AbortSignal; onPart: (part: number) => void };

async function hashFile({ path, file }: FolderFile, { signal, onPart }: Reading): Promise<PresentFile> {
  signal.throwIfAborted();
  try {
    // Chromium asks the disk for each, and the page waits: 0.1 ms, so not for all at once.
    const { size } = file;
    if (size > MAX_WHOLE_BYTES) {
      const onBytes = (bytes: number) => onPart(bytes / size);
      return { path, bytes: size, sha256: await hashArtifact(readPieces(file, signal), { onBytes }) };
    }
    const content = await file.arrayBuffer();
    const digest = await crypto.subtle.digest('SHA-256', content);
    onPart(1);
    return { path, bytes: content.byteLength, sha256: toHex(new Uint8Array(digest)) };
  } catch {
    throw new FormatError(`${printablePath(path)} cannot be read. Was it moved or changed meanwhile?`);
  }
}
