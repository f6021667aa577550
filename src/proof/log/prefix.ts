/** Proof by tiles about an earlier size of a log. */
import { equalBytes } from '../bytes/primitives.js';
import { verifyConsistency } from './merkle.js';
import { type ReadTile, rightEdgeTiles, rootFromTiles, type TileRef, tileWidth } from './tile.js';
import { consistencyProof, tilesForConsistency } from './tile-proof.js';

/** A tree by its size and root. */
type Tree = { readonly size: number; readonly rootHash: Uint8Array };

/** The root of the first `size` leaves of a tree, with the consistency proof that it is. */
export type ProvenPrefix = {
  readonly size: number;
  readonly rootHash: Uint8Array;
  readonly proof: readonly Uint8Array[];
};

/** The tiles from which {@link findPrefix} computes. */
export function tilesForPrefix(size: number, treeSize: number): TileRef[] {
  const refs = new Map<string, TileRef>();
  const edge = rightEdgeTiles(size).map(({ level, index }) => ({
    level,
    index,
    width: tileWidth(level, index, treeSize),
  }));
  for (const ref of [...edge, ...tilesForConsistency(size, treeSize)])
    refs.set(`${ref.level}/${ref.index}`, ref);
  return [...refs.values()];
}

/**
 * The root of the first `size` leaves of the tree. Returns undefined if the tiles are not those of the tree. Throws
 * FormatError if one is missing or too short.
 */
export function findPrefix(size: number, tree: Tree, readTile: ReadTile): ProvenPrefix | undefined {
  const rootHash = rootFromTiles(size, readTile);
  if (size === tree.size)
    return equalBytes(rootHash, tree.rootHash) ? { size, rootHash, proof: [] } : undefined;
  const proof = consistencyProof(size, tree.size, readTile);
  const claim = { oldSize: size, oldRoot: rootHash, newSize: tree.size, newRoot: tree.rootHash };
  return verifyConsistency(claim, proof) ? { size, rootHash, proof } : undefined;
}
