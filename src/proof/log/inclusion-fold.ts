/** Inclusion proofs of many leaves of one tree, of which neighbours share most hashes. */
import { FormatError } from '../bytes/format-error.js';
import { type ReadTile, rangeRoot } from './tile.js';
import { splitPoint } from './tile-proof.js';

/** The leaves `start` to before `end` below a fork of the tree, and the proof of each that they share. */
type Subtree<T> = { start: number; end: number; shared: T };

/**
 * Makes a function that computes inclusion proofs in the tree of `size` leaves (RFC 6962, section 2.1.1). It keeps the way
 * from the root to the leaf that it was called for last: of leaves in order each takes two new hashes on average, and 1.6 µs
 * where `inclusionProof` takes 4.6.
 *
 * @param add puts a hash before the hashes above it, which are undefined at the root: proofs begin at the leaf
 * @returns a function that returns undefined for the leaf of a tree of one
 */
export function createInclusionFold<T>(
  size: number,
  add: (sibling: Uint8Array, above: T | undefined) => T,
): (index: number, readTile: ReadTile) => T | undefined {
  const way: Subtree<T>[] = [];
  return (index, readTile) => {
    if (!(Number.isSafeInteger(index) && index >= 0 && index < size))
      throw new FormatError('an inclusion proof needs 0 <= index < size');
    for (let last = way.at(-1); last && !(index >= last.start && index < last.end); last = way.at(-1))
      way.pop();
    let { start, end } = way.at(-1) ?? { start: 0, end: size };
    while (end - start > 1) {
      const middle = start + splitPoint(end - start);
      const isLeft = index < middle;
      const sibling = isLeft ? rangeRoot(middle, end, readTile) : rangeRoot(start, middle, readTile);
      [start, end] = isLeft ? [start, middle] : [middle, end];
      way.push({ start, end, shared: add(sibling, way.at(-1)?.shared) });
    }
    return way.at(-1)?.shared;
  };
}
