/** What a reader of a stored log needs for its checkpoint, by the specifications. */
import { parseCheckpoint } from '../../../../src/proof/log/checkpoint.js';
import { leafHashOf, splitEntries, splitHashes, tilesOf, treeHash } from '../tree-of-tiles.js';

/** Reads a file by its path below the log's; undefined if there is none. */
type ReadFile = (path: string) => Buffer | undefined;

/** The size of the tree in the checkpoint, 0 without one, and what is wrong with the log up to there. */
export function examineLog(read: ReadFile): { size: number; problem: string | undefined } {
  const note = read('checkpoint');
  if (note === undefined) return { size: 0, problem: undefined };
  const { size, rootHash } = parseCheckpoint(note.toString());
  return { size, problem: size === 0 ? undefined : findProblem(read, size, Buffer.from(rootHash)) };
}

function findProblem(read: ReadFile, size: number, root: Buffer): string | undefined {
  const parts = (paths: readonly string[], split: (file: Buffer) => Buffer[]) =>
    paths.flatMap((path) => split(readTile(read, path) ?? Buffer.alloc(0)).slice(0, widthOf(path)));
  const leaves = parts(tilesOf('entries', size), splitEntries).map(leafHashOf);
  if (leaves.length !== size) return `${leaves.length} entries of ${size}`;
  if (!treeHash(leaves).equals(root)) return `another root of ${size} entries`;
  const full = Math.floor(size / 256);
  const above = Array.from({ length: full }, (_, i) => treeHash(leaves.slice(i * 256, i * 256 + 256)));
  for (const [level, hashes] of [leaves, above].entries()) {
    const found = Buffer.concat(parts(tilesOf(level, hashes.length), splitHashes));
    if (!found.equals(Buffer.concat(hashes))) return `other tiles of level ${level} for ${size} entries`;
  }
  return undefined;
}

/** C2SP tlog-tiles: in place of a partial tile there may be the full one. */
function readTile(read: ReadFile, path: string): Buffer | undefined {
  return read(path) ?? read(path.replace(/\.p\/\d+$/, ''));
}

function widthOf(path: string): number {
  return Number(/\.p\/(\d+)$/.exec(path)?.[1] ?? 256);
}
