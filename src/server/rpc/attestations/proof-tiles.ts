import { LRUCache } from 'lru-cache';
import { HASH_BYTES } from '../../../proof/log/merkle.js';
import type { ReadTile, TileRef } from '../../../proof/log/tile.js';
import { createBatchLoader } from '../../store/database/batch-loader.js';
import type { Pool } from '../../store/database/connect.js';
import { findTiles } from '../../store/log/tiles.js';

/** A cache of the logs' tiles. */
export type ProofTiles = {
  /** Loads tiles of a log. @returns a synchronous reader of them, for computing proofs */
  load(logId: number, places: readonly TileRef[]): Promise<ReadTile>;
};

/** 8 KiB each, and as much again for the cached nodes above its hashes. */
const TILES_CACHED = 200;
const TILE_LOADING = { maxKeys: 50, maxInFlight: 2 };

/** An empty cache. Tiles only grow, so a cached tile that is long enough is valid for every tree. */
export function createProofTiles(pool: Pool): ProofTiles {
  const cache = new LRUCache<string, Uint8Array>({ max: TILES_CACHED });
  const find = createBatchLoader(
    async (keys) =>
      new Map((await findTiles(pool, keys.map(placeOf))).map((tile) => [keyOf(tile), tile.hashes])),
    TILE_LOADING,
  );
  return {
    async load(logId, places) {
      const loaded = new Map<string, Uint8Array>();
      const load = async ({ level, index, width }: TileRef) => {
        const key = keyOf({ logId, level, index });
        const cached = cache.get(key);
        const isLong = cached !== undefined && cached.length >= width * HASH_BYTES;
        const hashes = isLong ? cached : await find(key);
        if (hashes === undefined) return;
        loaded.set(key, hashes);
        if (!isLong) cache.set(key, hashes);
      };
      await Promise.all(places.map(load));
      return (level, index) => loaded.get(keyOf({ logId, level, index }));
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
