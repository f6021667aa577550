/**
 * Proofs read out of tiles. Which subtrees a proof consists of follows from the sizes alone (RFC 6962, section 2.1),
 * so the tiles can be fetched first, all in one go: a few per level, log256 of the log, whatever the batch.
 */
import { FormatError } from '../bytes/format-error.js';
import {
  locateSubtree,
  type ReadTile,
  rangeRoot,
  rangeSubtrees,
  type Subtree,
  TILE_HEIGHT,
  type TileRef,
  tileWidth,
} from './tile.js';

/** Leaves `start` to before `end`: their root is one hash of a proof. */
type LeafRange = readonly [start: number, end: number];

/** The tiles, of any one height, from which {@link inclusionProof} is computed. */
export function tilesForInclusion(index: number, size: number, height = TILE_HEIGHT): TileRef[] {
  return tilesForRanges(inclusionRanges(index, size), size, height);
}

/** Proof that the leaf at `index` is in the tree of `size` leaves: sibling hashes, leaf to root. RFC 6962, section 2.1.1. */
export function inclusionProof(
  index: number,
  size: number,
  readTile: ReadTile,
  height = TILE_HEIGHT,
): Uint8Array[] {
  return inclusionRanges(index, size).map(([start, end]) => rangeRoot(start, end, readTile, height));
}

/** The tiles from which {@link consistencyProof} is computed. */
export function tilesForConsistency(oldSize: number, newSize: number): TileRef[] {
  return tilesForRanges(consistencyRanges(oldSize, newSize), newSize, TILE_HEIGHT);
}

/**
 * Proof that the tree of `newSize` leaves begins with the tree of `oldSize` leaves. RFC 6962, section 2.1.2;
 * empty for equal sizes and for an empty old tree.
 */
export function consistencyProof(oldSize: number, newSize: number, readTile: ReadTile): Uint8Array[] {
  return consistencyRanges(oldSize, newSize).map(([start, end]) => rangeRoot(start, end, readTile));
}

/** The leaves below each sibling on the way from a leaf to the root. */
function inclusionRanges(index: number, size: number): LeafRange[] {
  return inclusionPath(index, size).map((sibling) => {
    const start = sibling.index * 2 ** sibling.height;
    return [start, Math.min(start + 2 ** sibling.height, size)];
  });
}

/**
 * The sibling of each node on the way from a leaf to the root. A full subtree, but the last node of a height may have fewer
 * leaves.
 */
export function inclusionPath(index: number, size: number): Subtree[] {
  if (!(Number.isSafeInteger(size) && Number.isSafeInteger(index) && index >= 0 && index < size)) {
    throw new FormatError('an inclusion proof needs 0 <= index < size');
  }
  const siblings: Subtree[] = [];
  let [node, last] = [index, size - 1];
  for (let height = 0; last > 0; height++) {
    if (node % 2 === 1) siblings.push({ height, index: node - 1 });
    else if (node < last) siblings.push({ height, index: node + 1 });
    node = Math.floor(node / 2);
    last = Math.floor(last / 2);
  }
  return siblings;
}

/** SUBPROOF of RFC 6962, from the root down to where the old tree ends. */
function consistencyRanges(oldSize: number, newSize: number): LeafRange[] {
  if (
    !(Number.isSafeInteger(newSize) && Number.isSafeInteger(oldSize) && oldSize >= 0 && oldSize <= newSize)
  ) {
    throw new FormatError('a consistency proof needs 0 <= old size <= new size');
  }
  if (oldSize === 0) return [];
  const ranges: LeafRange[] = [];
  let [start, end] = [0, newSize];
  while (oldSize < end) {
    const middle = start + splitPoint(end - start);
    if (oldSize <= middle) {
      ranges.push([middle, end]);
      end = middle;
    } else {
      ranges.push([start, middle]);
      start = middle;
    }
  }
  // The old tree as a whole (start 0) is what the verifier already knows; a part of it is the proof's first hash.
  if (start > 0) ranges.push([start, end]);
  return ranges.reverse();
}

/** The largest power of two below `leaves`, which is at least 2. */
export function splitPoint(leaves: number): number {
  let split = 1;
  while (split * 2 < leaves) split *= 2;
  return split;
}

function tilesForRanges(ranges: readonly LeafRange[], size: number, height: number): TileRef[] {
  const refs = new Map<string, TileRef>();
  for (const subtree of ranges.flatMap(([start, end]) => rangeSubtrees(start, end))) {
    const { level, index } = locateSubtree(subtree, height);
    refs.set(`${level}/${index}`, {
      level,
      index,
      width: tileWidth(level, index, size, height),
    });
  }
  return [...refs.values()];
}
