/**
 * A log's tree cut into tiles (C2SP tlog-tiles, height 8). A tile is a row of 1 to 256 hashes of 32 bytes each; an
 * entry of level 0 is a leaf hash, an entry of level L the root of a full subtree of 256^L leaves, which is the root
 * of the full tile below it. Growing the log appends to the rightmost tile of each level and never changes a hash
 * that stands, so a tile that holds more than a size asks for serves that size too: its first hashes are the same.
 */
import { FormatError } from '../bytes/format-error.js';
import { sha256Into } from '../bytes/primitives.js';
import { foldRight, HASH_BYTES } from './merkle.js';
import { TILE_WIDTH } from './tile-path.js';

/** A tile's address, and its number of hashes in a tree. */
export interface TileRef {
  readonly level: number;
  readonly index: number;
  readonly width: number;
}

/** A tile's place and its hashes, joined. */
export interface Tile {
  readonly level: number;
  readonly index: number;
  readonly hashes: Uint8Array;
}

/** Looks up a tile's hashes. They may be more than the tree in question needs; their bytes must not change later. */
export type ReadTile = (level: number, index: number) => Uint8Array | undefined;

/** The root of a full subtree: it covers the leaves from `index * 2^height` to before `(index + 1) * 2^height`. */
export interface Subtree {
  readonly height: number;
  readonly index: number;
}

/** The height of the tiles of C2SP tlog-tiles. */
export const TILE_HEIGHT = 8;

/**
 * Half that height. A proof from tiles of this height, of 16 hashes, is cheaper where single ones can be read: each
 * sibling is a hash of a tile or takes up to seven hashes, not up to 127.
 */
export const HALF_HEIGHT = 4;

/** Number of the tile's hashes in a tree of `size` leaves: 0 (no tile) to 2^`height` (full). */
export function tileWidth(level: number, index: number, size: number, height = TILE_HEIGHT): number {
  const width = 2 ** height;
  const entries = Math.floor(size / width ** level);
  return Math.max(0, Math.min(width, entries - index * width));
}

/** The partial tiles at the right edge of a tree of `size` leaves, lowest level first: all that is needed to extend it. */
export function rightEdgeTiles(size: number): TileRef[] {
  const edge: TileRef[] = [];
  for (let level = 0, entries = size; entries > 0; level++, entries = Math.floor(entries / TILE_WIDTH)) {
    const width = entries % TILE_WIDTH;
    if (width > 0) edge.push({ level, index: Math.floor(entries / TILE_WIDTH), width });
  }
  return edge;
}

/** A log after an extension: its new size and root, and each tile that is new or has grown, whole. */
interface Extension {
  readonly size: number;
  readonly root: Uint8Array;
  readonly tiles: Tile[];
}

/**
 * Appends leaf hashes to the log of `size` leaves whose right edge tiles (see {@link rightEdgeTiles}) are given.
 * Cost is one node hash a leaf. Throws FormatError when a tile of the right edge is missing or too short.
 */
export function extendTiles(
  log: { readonly size: number; readonly tiles: readonly Tile[] },
  leafHashes: readonly Uint8Array[],
): Extension {
  const readOld = readFrom(log.tiles);
  const size = log.size + leafHashes.length;
  const tiles: Tile[] = [];
  let added = leafHashes;
  for (let level = 0; added.length > 0; level++) {
    const extended = extendLevel(level, Math.floor(log.size / TILE_WIDTH ** level), readOld, added);
    for (const tile of extended) tiles.push(tile);
    added = extended.filter((tile) => tile.hashes.length === TILE_WIDTH * HASH_BYTES).map(rootOfTile);
  }
  const readNew = readFrom(tiles);
  const root = rootFromTiles(size, (level, index) => readNew(level, index) ?? readOld(level, index));
  return { size, root, tiles };
}

/** Root of the tree of `size` leaves. Reads the right edge's tiles only; throws FormatError when one is missing or too short. */
export function rootFromTiles(size: number, readTile: ReadTile): Uint8Array {
  return rangeRoot(0, size, readTile);
}

/** Root over the leaves `start` to before `end`, where `start` is a multiple of a power of two not below their number. */
export function rangeRoot(start: number, end: number, readTile: ReadTile, height = TILE_HEIGHT): Uint8Array {
  return foldRight(rangeSubtrees(start, end).map((subtree) => subtreeRoot(subtree, readTile, height)));
}

/** The full subtrees that cover such a range, largest (leftmost) first. */
export function rangeSubtrees(start: number, end: number): Subtree[] {
  const subtrees: Subtree[] = [];
  let at = start;
  while (at < end) {
    let leaves = 1;
    let height = 0;
    while (leaves * 2 <= end - at) {
      leaves *= 2;
      height += 1;
    }
    subtrees.push({ height, index: at / leaves });
    at += leaves;
  }
  return subtrees;
}

/** The tile that a subtree's root is computed from, and which of its hashes: the subtree's own, or all those below it. */
export function locateSubtree(
  { height, index }: Subtree,
  tileHeight = TILE_HEIGHT,
): {
  level: number;
  index: number;
  first: number;
  count: number;
} {
  const count = 2 ** (height % tileHeight);
  const entry = index * count;
  return {
    level: Math.floor(height / tileHeight),
    index: Math.floor(entry / 2 ** tileHeight),
    first: entry % 2 ** tileHeight,
    count,
  };
}

/** Root of a full subtree. Throws FormatError when its tile is missing or too short. */
function subtreeRoot(subtree: Subtree, readTile: ReadTile, tileHeight: number): Uint8Array {
  const { level, index, first, count } = locateSubtree(subtree, tileHeight);
  const hashes = checkWidth(readTile(level, index), level, index, first + count);
  return tileNode(hashes, subtree.height % tileHeight, first);
}

/** Lays `added` hashes behind the `entries` that a level has, and cuts the row into tiles from the one that grows first. */
function extendLevel(
  level: number,
  entries: number,
  readOld: ReadTile,
  added: readonly Uint8Array[],
): Tile[] {
  const width = entries % TILE_WIDTH;
  const firstIndex = Math.floor(entries / TILE_WIDTH);
  const row = new Uint8Array((width + added.length) * HASH_BYTES);
  if (width > 0) {
    const old = checkWidth(readOld(level, firstIndex), level, firstIndex, width);
    row.set(old.subarray(0, width * HASH_BYTES));
  }
  for (const [i, hash] of added.entries()) {
    if (hash.length !== HASH_BYTES) throw new FormatError('a leaf hash is not 32 bytes long');
    row.set(hash, (width + i) * HASH_BYTES);
  }
  const tiles: Tile[] = [];
  const tileBytes = TILE_WIDTH * HASH_BYTES;
  for (let at = 0; at < row.length; at += tileBytes) {
    tiles.push({
      level,
      index: firstIndex + at / tileBytes,
      hashes: row.slice(at, at + tileBytes),
    });
  }
  return tiles;
}

function rootOfTile({ hashes }: Tile): Uint8Array {
  return tileNode(hashes, TILE_HEIGHT, 0);
}

function checkWidth(hashes: Uint8Array | undefined, level: number, index: number, width: number): Uint8Array {
  if (hashes === undefined || hashes.length < width * HASH_BYTES) {
    throw new FormatError(`tile ${level}/${index} holds fewer than the ${width} hashes needed`);
  }
  return hashes;
}

/** Looks tiles up in a list. */
export function readFrom(tiles: readonly Tile[]): ReadTile {
  const byPlace = new Map(tiles.map((tile) => [`${tile.level}/${tile.index}`, tile.hashes]));
  return (level, index) => byPlace.get(`${level}/${index}`);
}

/*
 * The nodes above a tile's hashes. A proof takes up to eight of them from each tile it touches, which costs 255 hashes
 * a tile; a tile's nodes are kept for as long as its bytes are, so that a caller who keeps tiles pays once.
 */

/** For each tile the rows above it: row `h - 1` holds the roots of its full subtrees of 2^h hashes. */
const rowsOfTile = new WeakMap<Uint8Array, Uint8Array[]>();

/**
 * Root over the `2^height` hashes of the tile from `first` on, a multiple of their number. The tile's bytes must not
 * change after the first call.
 */
function tileNode(hashes: Uint8Array, height: number, first: number): Uint8Array {
  const row = tileRow(hashes, height);
  const at = (first / 2 ** height) * HASH_BYTES;
  // Not slice(): a Buffer's is a view, and a proof must not keep a whole tile alive.
  return new Uint8Array(row.subarray(at, at + HASH_BYTES));
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
