import { LRUCache } from 'lru-cache';
import { HASH_BYTES } from '../../../proof/log/merkle.js';
import {
  HALF_HEIGHT,
  locateSubtree,
  type ReadTile,
  type Subtree,
  subtreeRoot,
  tileWidth,
} from '../../../proof/log/tile.js';
import { foldNode } from '../../../proof/log/tile-nodes.js';
import { inclusionProofOf } from '../../../proof/log/tile-proof.js';
import { createBatchLoader } from '../../store/database/batch-loader.js';
import type { Pool } from '../../store/database/connect.js';
import { findHalfTiles, HALF_BYTES } from '../../store/log/tiles.js';

/** Computes inclusion proofs from tiles of {@link HALF_HEIGHT}. */
export type ProofTiles = {
  /**
   * The inclusion proofs of a leaf in the trees of these sizes, which are published.
   *
   * @param own the leaf's tile and the one above it if its row was read with them: they are used once, so not cached
   */
  prove(
    logId: number,
    logIndex: number,
    sizes: readonly number[],
    own?: Uint8Array | null,
  ): Promise<Uint8Array[][]>;
};

/** Of a log of 10 million leaves in batches of 2,000 all tiles but the two lowest levels, and those at the batches' ends. */
const CACHE_BYTES = 16 * 1024 * 1024;
/** Memory that a cached tile takes beside its hashes, most of it for the nodes above them. */
const OVERHEAD_BYTES = 900;
const TILE_LOADING = { maxKeys: 200, maxInFlight: 2 };
const HALF_WIDTH = 2 ** HALF_HEIGHT;
/** Takes the place of tiles that are still to be loaded. */
const BLANK = new Uint8Array(HALF_BYTES);

/** An empty cache. Tiles only grow, so a cached tile that is long enough is valid for every tree. */
export function createProofTiles(pool: Pool): ProofTiles {
  const cache = new LRUCache<string, Uint8Array>({ maxSize: CACHE_BYTES });
  const find = createBatchLoader(async (keys) => {
    const found = await findHalfTiles(pool, keys.map(placeOf));
    return new Map([...found].map(([n, hashes]) => [keys[n] ?? '', hashes]));
  }, TILE_LOADING);
  const load = async (key: string): Promise<Uint8Array | undefined> => {
    const hashes = await find(key);
    if (hashes !== undefined) cache.set(key, hashes, { size: hashes.length + OVERHEAD_BYTES });
    return hashes;
  };
  return {
    async prove(logId, logIndex, sizes, own = null) {
      const tiles = createTileSet((key) => cache.get(key), logId);
      const rootOfOwn = own === null ? () => undefined : createOwnRoots(logIndex, own);
      const prove = () =>
        sizes.map((size) =>
          inclusionProofOf(
            logIndex,
            size,
            (subtree) => rootOfOwn(subtree) ?? subtreeRoot(subtree, tiles.readIn(size), HALF_HEIGHT),
          ),
        );
      const proofs = prove();
      if (tiles.missing.size === 0) return proofs;
      await Promise.all([...tiles.missing].map(async ([place, key]) => tiles.put(place, await load(key))));
      return prove();
    },
  };
}

/** Computes the roots of subtrees from a leaf's own tiles; undefined of others. */
function createOwnRoots(logIndex: number, own: Uint8Array) {
  const leaves = own.subarray(0, HALF_BYTES);
  const above = own.subarray(HALF_BYTES);
  const leafTile = Math.floor(logIndex / HALF_WIDTH);
  return (subtree: Subtree): Uint8Array | undefined => {
    const { level, index, first, count } = locateSubtree(subtree, HALF_HEIGHT);
    if (level > 1 || index !== (level === 0 ? leafTile : Math.floor(leafTile / HALF_WIDTH))) return undefined;
    const hashes = level === 0 ? leaves : above;
    if (hashes.length < (first + count) * HASH_BYTES) return undefined;
    return foldNode(hashes, subtree.height % HALF_HEIGHT, first);
  };
}

/** The tiles of one proof, by their place: its level, and above that its index. */
function createTileSet(findCached: (key: string) => Uint8Array | undefined, logId: number) {
  const found = new Map<number, Uint8Array>();
  const missing = new Map<number, string>();
  const loaded = new Set<number>();
  const readAt = (place: number, level: number, index: number, width: number) => {
    const known = found.get(place);
    if (loaded.has(place) || (known !== undefined && known.length >= width)) return known;
    const key = `${logId}/${level}/${index}`;
    const cached = findCached(key);
    if (cached === undefined || cached.length < width) {
      missing.set(place, key);
      return BLANK;
    }
    found.set(place, cached);
    return cached;
  };
  return {
    /** Tiles that were read but are not known yet. */
    missing,
    put: (place: number, hashes: Uint8Array | undefined) => {
      loaded.add(place);
      if (hashes !== undefined) found.set(place, hashes);
    },
    readIn:
      (size: number): ReadTile =>
      (level, index) =>
        // A log has fewer than 16 levels of such tiles.
        readAt(index * 16 + level, level, index, tileWidth(level, index, size, HALF_HEIGHT) * HASH_BYTES),
  };
}

function placeOf(key: string) {
  const [logId = 0, level = 0, index = 0] = key.split('/').map(Number);
  return { logId, level, index };
}
