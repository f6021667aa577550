/**
 * The nodes above a tile's hashes. A proof takes up to eight of them from each tile it touches, which costs 255 hashes
 * a tile; a tile's nodes are kept for as long as its bytes are, so that a caller who keeps tiles pays once.
 */

import { sha256Into } from '../bytes/primitives.js';
import { HASH_BYTES } from './merkle.js';

/** For each tile the rows above it: row `h - 1` holds the roots of its full subtrees of 2^h hashes. */
const rowsOfTile = new WeakMap<Uint8Array, Uint8Array[]>();

/**
 * Root over the `2^height` hashes of the tile from `first` on, a multiple of their number. The tile's bytes must not
 * change after the first call.
 */
export function tileNode(hashes: Uint8Array, height: number, first: number): Uint8Array {
  const row = tileRow(hashes, height);
  const at = (first / 2 ** height) * HASH_BYTES;
  // Not slice(): a Buffer's is a view, and a proof must not keep a whole tile alive.
  return new Uint8Array(row.subarray(at, at + HASH_BYTES));
}

/** The same, computed anew: cheaper for a tile that one proof is made from. */
export function foldNode(hashes: Uint8Array, height: number, first: number): Uint8Array {
  let row = new Uint8Array(hashes.subarray(first * HASH_BYTES, (first + 2 ** height) * HASH_BYTES));
  while (row.length > HASH_BYTES) row = rowAbove(row);
  return row;
}

/** The roots over each `2^height` hashes of the tile, joined; hashes without as many neighbours are left out. As above. */
export function tileRow(hashes: Uint8Array, height: number): Uint8Array {
  const rows = rowsOfTile.get(hashes) ?? [];
  rowsOfTile.set(hashes, rows);
  for (let h = rows.length; h < height; h++) rows.push(rowAbove(rows[h - 1] ?? hashes));
  return height === 0 ? hashes : rows[height - 1]!;
}

/** The hashes of the pairs in a row of joined hashes; one without a partner is left out. */
function rowAbove(row: Uint8Array): Uint8Array<ArrayBuffer> {
  const nodes = Math.floor(row.length / HASH_BYTES / 2);
  const above = new Uint8Array(nodes * HASH_BYTES);
  const node = new Uint8Array(1 + 2 * HASH_BYTES);
  node[0] = 0x01;
  for (let i = 0; i < nodes; i++) {
    node.set(row.subarray(i * 2 * HASH_BYTES, (i + 1) * 2 * HASH_BYTES), 1);
    sha256Into(node, above, i * HASH_BYTES);
  }
  return above;
}
