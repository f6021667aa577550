import { LRUCache } from 'lru-cache';
import { HASH_BYTES } from '../../../proof/log/merkle.js';
import { HALF_HEIGHT, type ReadTile } from '../../../proof/log/tile.js';
import { inclusionProof, tilesForInclusion } from '../../../proof/log/tile-proof.js';
import { createBatchLoader } from '../../store/database/batch-loader.js';
import type { Pool } from '../../store/database/connect.js';
import { findHalfTiles } from '../../store/log/tiles.js';

/** Computes inclusion proofs from cached tiles of {@link HALF_HEIGHT}. */
export type ProofTiles = {
  /** The inclusion proofs of a leaf in the trees of these sizes, which are published. */
  prove(logId: number, logIndex: number, sizes: readonly number[]): Promise<Uint8Array[][]>;
};

/** About 1.5 KiB each with what is kept above them: all but the two lowest levels of 10 million leaves, and recent ones. */
const TILES_CACHED = 8_000;
const TILE_LOADING = { maxKeys: 200, maxInFlight: 2 };

/** An empty cache. Tiles only grow, so a cached tile that is long enough is valid for every tree. */
export function createProofTiles(pool: Pool): ProofTiles {
  const cache = new LRUCache<string, Uint8Array>({ max: TILES_CACHED });
  const find = createBatchLoader(async (keys) => {
    const found = await findHalfTiles(pool, keys.map(placeOf));
    return new Map([...found].map(([n, hashes]) => [keys[n] ?? '', hashes]));
  }, TILE_LOADING);
  const load = async (key: string, width: number): Promise<Uint8Array | undefined> => {
    const cached = cache.get(key);
    if (cached !== undefined && cached.length >= width * HASH_BYTES) return cached;
    const hashes = await find(key);
    if (hashes !== undefined) cache.set(key, hashes);
    return hashes;
  };
  return {
    async prove(logId, logIndex, sizes) {
      const places = sizes.flatMap((size) => tilesForInclusion(logIndex, size, HALF_HEIGHT));
      const widths = new Map<string, number>();
      for (const { level, index, width } of places) {
        const key = keyOf({ logId, level, index });
        widths.set(key, Math.max(width, widths.get(key) ?? 0));
      }
      const loaded = new Map<string, Uint8Array | undefined>();
      await Promise.all([...widths].map(async ([key, width]) => loaded.set(key, await load(key, width))));
      const readTile: ReadTile = (level, index) => loaded.get(keyOf({ logId, level, index }));
      return sizes.map((size) => inclusionProof(logIndex, size, readTile, HALF_HEIGHT));
    },
  };
}

function keyOf({ logId, level, index }: { logId: number; level: number; index: number }): string {
  return `${logId}/${level}/${index}`;
}

function placeOf(key: string) {
  const [logId = 0, level = 0, index = 0] = key.split('/').map(Number);
  return { logId, level, index };
}
