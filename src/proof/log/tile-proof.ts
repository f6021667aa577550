/**
 * Proofs read out of tiles. Which subtrees a proof consists of follows from the sizes alone (RFC 6962, section 2.1),
 * so the tiles can be fetched first, all in one go: a few per level, log256 of the log, whatever the batch.
 */
import { FormatError } from '../bytes/format-error.js';
import { foldRight } from './merkle.js';
import {
  locateSubtree,
  type ReadTile,
  rangeRoot,
  rangeSubtrees,
  type Subtree,
  subtreeRoot,
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
  return inclusionProofOf(index, size, (subtree) => subtreeRoot(subtree, readTile, height));
}

/** The same, from the roots of full subtrees. */
export function inclusionProofOf(
  index: number,
  size: number,
  rootOf: (subtree: Subtree) => Uint8Array,
): Uint8Array[] {
  return inclusionRanges(index, size).map(([start, end]) => foldRight(rangeSubtrees(start, end).map(rootOf)));
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

/** Each fork on the way down to the leaf leaves one sibling behind. */
function inclusionRanges(index: number, size: number): LeafRange[] {
  if (!(Number.isSafeInteger(size) && Number.isSafeInteger(index) && index >= 0 && index < size)) {
    throw new FormatError('an inclusion proof needs 0 <= index < size');
  }
  const ranges: LeafRange[] = [];
  let [start, end] = [0, size];
  while (end - start > 1) {
    const middle = start + splitPoint(end - start);
    if (index < middle) {
      ranges.push([middle, end]);
      end = middle;
    } else {
      ranges.push([start, middle]);
      start = middle;
    }
  }
  return ranges.reverse();
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
