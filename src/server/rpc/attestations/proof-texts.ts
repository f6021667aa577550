/** Inclusion proofs as JSON spells them. */
import { createInclusionFold } from '../../../proof/log/inclusion-fold.js';
import { HASH_BYTES } from '../../../proof/log/merkle.js';
import type { ReadTile } from '../../../proof/log/tile.js';

/** A hash in base64, in quotes, and a comma. */
const HASH_TEXT_BYTES = 4 * Math.ceil(HASH_BYTES / 3) + 3;
/** No tree is higher: its size is below 2^53. */
const MAX_HASHES = 53;
/** The bytes of the longest proof, with a comma after each hash. */
export const MAX_PROOF_BYTES = MAX_HASHES * HASH_TEXT_BYTES;

const ALPHABET = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/');
const [QUOTE, COMMA, PADDING] = Buffer.from('",=') as unknown as [number, number, number];

/**
 * Writes the hash that begins at `from` as an element of a JSON array, in base64, with a comma after it: 0.06 µs, by way of
 * a Buffer and a string 0.4, and both are garbage.
 *
 * @returns the end of what was written
 */
export function writeHash(target: Uint8Array, at: number, hashes: Uint8Array, from: number): number {
  target[at] = QUOTE;
  let end = at + 1;
  let next = from;
  for (; next < from + HASH_BYTES - 2; next += 3, end += 4)
    writeBits(target, end, (hashes[next]! << 16) | (hashes[next + 1]! << 8) | hashes[next + 2]!);
  // Two bytes are left.
  writeBits(target, end, (hashes[next]! << 16) | (hashes[next + 1]! << 8));
  target[end + 3] = PADDING;
  target[end + 4] = QUOTE;
  target[end + 5] = COMMA;
  return end + 6;
}

/** Writes 24 bits as four characters. */
function writeBits(target: Uint8Array, at: number, bits: number): void {
  target[at] = ALPHABET[bits >> 18]!;
  target[at + 1] = ALPHABET[(bits >> 12) & 63]!;
  target[at + 2] = ALPHABET[(bits >> 6) & 63]!;
  target[at + 3] = ALPHABET[bits & 63]!;
}

/**
 * Creates a function that spells the inclusion proof of a leaf in the tree of `size` leaves as the elements of a JSON array
 * in UTF-8; empty in a tree of one. The text holds until the next call: it is in a buffer that begins with the leaf's
 * sibling and ends with the hash below the root, so that neighbours write what they do not share. A line takes 2 µs less than with
 * text that is joined.
 */
export function createProofTexts(size: number): (index: number, readTile: ReadTile) => Uint8Array {
  const buffer = Buffer.alloc(MAX_PROOF_BYTES);
  const fold = createInclusionFold<number>(size, (sibling, above = MAX_PROOF_BYTES) => {
    const start = above - HASH_TEXT_BYTES;
    // Every text ends before a comma, which that of the hash below the root has too.
    writeHash(buffer, start, sibling, 0);
    return start;
  });
  return (index, readTile) => {
    const start = fold(index, readTile);
    return start === undefined
      ? buffer.subarray(MAX_PROOF_BYTES)
      : buffer.subarray(start, MAX_PROOF_BYTES - 1);
  };
}
