import { LRUCache } from 'lru-cache';
import { concatBytes } from '../../../proof/bytes/encoding.js';
import { FormatError } from '../../../proof/bytes/format-error.js';
import { sha256Into } from '../../../proof/bytes/primitives.js';
import { HASH_BYTES, nodeHash } from '../../../proof/log/merkle.js';
import { HALF_HEIGHT, locateSubtree, type Subtree } from '../../../proof/log/tile.js';
import { inclusionPath } from '../../../proof/log/tile-proof.js';
import { createBatchLoader } from '../../database/batch-loader.js';
import type { Pool } from '../../database/connect.js';
import { findHalfTiles, HALF_BYTES } from '../../log/store/tiles.js';
import { MAX_PROOF_BYTES, writeHash } from './bundle-template.js';

/** Computes inclusion proofs from tiles of {@link HALF_HEIGHT}. */
export type ProofTiles = {
  /**
   * The inclusion proofs of a leaf in the trees of these sizes, which are published: each as the elements of a JSON array
   * of hashes in base64, in UTF-8.
   *
   * @param own the leaf's tile and the one above it, joined, in base64, if its row was read with them: they are used once, so
   * not cached
   */
  prove(logId: number, logIndex: number, sizes: readonly number[], own?: string | null): Promise<Buffer[]>;
};

/**
 * The nodes of a tree's right edge that are siblings: of each height from `lowest` on, where the last node is a right child,
 * its left sibling and that node. The proofs of a batch share them.
 */
type RightEdge = { readonly lowest: number; readonly pairs: Uint8Array };

/** Of 10 million leaves in batches of 2,000 all tiles but the two lowest levels, and all right edges: 16 MB. */
const CACHE_BYTES = 16 * 1024 * 1024;
/** Memory that a cached tile takes, and a cached edge. */
const TILE_BYTES = 2_000;
const EDGE_BYTES = 2_100;
const TILE_LOADING = { maxKeys: 200, maxInFlight: 2 };
const HALF_WIDTH = 2 ** HALF_HEIGHT;
const PAIR_BYTES = 2 * HASH_BYTES;

/** An empty cache. Tiles only grow, so a cached tile that is long enough is valid for every tree. */
export function createProofTiles(pool: Pool): ProofTiles {
  const cache = new LRUCache<string, HalfTile | RightEdge>({ maxSize: CACHE_BYTES });
  const find = createBatchLoader(async (keys) => {
    const found = await findHalfTiles(pool, keys.map(placeOf));
    return new Map([...found].map(([n, hashes]) => [keys[n] ?? '', hashes]));
  }, TILE_LOADING);
  const load = async (key: string): Promise<HalfTile | undefined> => {
    const hashes = await find(key);
    if (hashes === undefined) return undefined;
    const tile = openHalfTile(hashes);
    if (isCached(key, hashes)) cache.set(key, tile, { size: TILE_BYTES });
    return tile;
  };
  const findEdge = (logId: number, size: number, tiles: TileSet): RightEdge | undefined => {
    const key = `${logId} ${size}`;
    const cached = cache.get(key) as RightEdge | undefined;
    if (cached !== undefined) return cached;
    const edge = computeEdge(size, tiles);
    if (edge !== undefined) cache.set(key, edge, { size: EDGE_BYTES });
    return edge;
  };
  return {
    async prove(logId, logIndex, sizes, own = null) {
      const findCached = (key: string) => cache.get(key) as HalfTile | undefined;
      const tiles = createTileSet(findCached, logId, openOwn(logIndex, own));
      const prove = () =>
        sizes.map((size) => serializeProof(logIndex, size, findEdge(logId, size, tiles), tiles));
      const proofs = prove();
      if (tiles.missing.size === 0) return proofs;
      await Promise.all([...tiles.missing].map(async (key) => tiles.put(key, await load(key))));
      return prove();
    },
  };
}

type PlacedTile = { readonly index: number; readonly tile: HalfTile };

/** The tiles that come with a leaf's row, by level. */
function openOwn(logIndex: number, own: string | null): readonly PlacedTile[] {
  if (own === null) return [];
  const bytes = Buffer.from(own, 'base64');
  return [bytes.subarray(0, HALF_BYTES), bytes.subarray(HALF_BYTES)].map((hashes, level) => ({
    index: Math.floor(logIndex / HALF_WIDTH ** (level + 1)),
    tile: openHalfTile(hashes),
  }));
}

/** A proof. Of tiles that are still to be loaded nothing is in it. */
function serializeProof(logIndex: number, size: number, edge: RightEdge | undefined, tiles: TileSet): Buffer {
  const scratch = Buffer.allocUnsafe(MAX_PROOF_BYTES);
  let end = 0;
  for (const sibling of inclusionPath(logIndex, size)) {
    const at = findInEdge(edge, sibling, size);
    end =
      edge === undefined || at === undefined
        ? tiles.write(sibling, scratch, end)
        : writeHash(scratch, end, edge.pairs, at);
  }
  // Without the last comma.
  return scratch.subarray(0, Math.max(0, end - 1));
}

/** Where a sibling is in the edge of the tree of this size; undefined if it is not in it. */
function findInEdge(
  edge: RightEdge | undefined,
  { height, index }: Subtree,
  size: number,
): number | undefined {
  if (edge === undefined || height < edge.lowest) return undefined;
  const last = Math.floor((size - 1) / 2 ** height);
  if (last % 2 === 0 || index < last - 1) return undefined;
  return (height - edge.lowest) * PAIR_BYTES + (index === last ? HASH_BYTES : 0);
}

/** Computes the right edge of a tree. Returns undefined if tiles are still to be loaded. */
function computeEdge(size: number, tiles: TileSet): RightEdge | undefined {
  // The last node of this height is a full subtree, and so is every node to its left.
  let lowest = 0;
  while ((size / 2 ** lowest) % 2 === 0) lowest++;
  let last = size / 2 ** lowest - 1;
  let root = tiles.node({ height: lowest, index: last });
  const pairs: Uint8Array[] = [];
  for (let height = lowest; last > 0; height++, last = Math.floor(last / 2)) {
    const pair = new Uint8Array(PAIR_BYTES);
    pairs.push(pair);
    if (last % 2 === 0) continue;
    const left = tiles.node({ height, index: last - 1 });
    if (root === undefined || left === undefined) continue;
    pair.set(left);
    pair.set(root, HASH_BYTES);
    root = nodeHash(left, root);
  }
  return tiles.missing.size === 0 ? { lowest, pairs: concatBytes(...pairs) } : undefined;
}

type TileSet = ReturnType<typeof createTileSet>;

/** The tiles of some proofs, of which `own` are known. */
function createTileSet(
  findCached: (key: string) => HalfTile | undefined,
  logId: number,
  own: readonly PlacedTile[],
) {
  const loaded = new Map<string, HalfTile | undefined>();
  const missing = new Set<string>();
  let last: { level: number; index: number; tile: HalfTile } | undefined;
  const find = (level: number, index: number, width: number): HalfTile | undefined => {
    const known = own[level];
    if (known?.index === index && known.tile.width >= width) return known.tile;
    // Neighbours on the way to the root are mostly in one tile.
    if (last?.level === level && last.index === index && last.tile.width >= width) return last.tile;
    const key = `${logId}/${level}/${index}`;
    const tile = loaded.get(key) ?? findCached(key);
    if (tile !== undefined && tile.width >= width) {
      last = { level, index, tile };
      return tile;
    }
    if (loaded.has(key)) throw new FormatError(`tile ${level}/${index} holds fewer than ${width} hashes`);
    missing.add(key);
    return undefined;
  };
  return {
    /** Tiles that were read but are not known yet. */
    missing,
    put: (key: string, tile: HalfTile | undefined) => {
      loaded.set(key, tile);
      missing.delete(key);
    },
    /** The root of a full subtree; undefined if its tile is still to be loaded. */
    node(subtree: Subtree): Uint8Array | undefined {
      const { level, index, first, count } = locateSubtree(subtree, HALF_HEIGHT);
      const tile = find(level, index, first + count);
      if (tile === undefined) return undefined;
      const at = locateNode(tile, first, count);
      return tile.nodes.subarray(at, at + HASH_BYTES);
    },
    /** Writes the same, see {@link writeHash}; nothing if its tile is still to be loaded. */
    write(subtree: Subtree, target: Uint8Array, at: number): number {
      const { level, index, first, count } = locateSubtree(subtree, HALF_HEIGHT);
      const tile = find(level, index, first + count);
      return tile === undefined ? at : writeHash(target, at, tile.nodes, locateNode(tile, first, count));
    },
  };
}

/** Of the two lowest levels only tiles that grow are cached: full ones come with rows, or a right edge is made of them once. */
function isCached(key: string, hashes: Uint8Array): boolean {
  return placeOf(key).level > 1 || hashes.length < HALF_BYTES;
}

function placeOf(key: string) {
  const [logId = 0, level = 0, index = 0] = key.split('/').map(Number);
  return { logId, level, index };
}

/**
 * A tile of {@link HALF_HEIGHT}, whose nodes are laid out as a heap: the one at place `p` is the parent of those at `2 p`
 * and `2 p + 1`, and the tile's hashes are at the last {@link HALF_WIDTH} places. A proof in a log of 10 million leaves takes
 * 33 µs beside the look-up of its row; 58 with a hash and a text for each node, of which those of cached tiles are kept.
 */
type HalfTile = {
  /** The number of hashes. */
  readonly width: number;
  readonly nodes: Uint8Array;
  /** Which places of nodes above the hashes have been computed, a bit each. */
  known: number;
};

/** The input of a node's hash (RFC 6962, section 2.1): a byte 1, and the two children. */
const input = new Uint8Array(1 + 2 * HASH_BYTES).fill(1);

/** A tile of these hashes, joined; they are copied. */
function openHalfTile(hashes: Uint8Array): HalfTile {
  const nodes = new Uint8Array(2 * HALF_WIDTH * HASH_BYTES);
  nodes.set(hashes, HALF_WIDTH * HASH_BYTES);
  return { width: hashes.length / HASH_BYTES, nodes, known: 0 };
}

/**
 * The offset in `nodes` of the root over `count` hashes from `first` on, a power of two and a multiple of it. The tile must
 * be as wide.
 */
function locateNode(tile: HalfTile, first: number, count: number): number {
  const place = (HALF_WIDTH + first) / count;
  computeNode(tile, place);
  return place * HASH_BYTES;
}

function computeNode(tile: HalfTile, place: number): void {
  if (place >= HALF_WIDTH || (tile.known & (1 << place)) !== 0) return;
  computeNode(tile, 2 * place);
  computeNode(tile, 2 * place + 1);
  const children = 2 * place * HASH_BYTES;
  for (let i = 0; i < 2 * HASH_BYTES; i++) input[1 + i] = tile.nodes[children + i] as number;
  sha256Into(input, tile.nodes, place * HASH_BYTES);
  tile.known |= 1 << place;
}
