import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import { unavailable } from '../core/errors.js';
import { limitConcurrency } from '../core/limit-concurrency.js';

/** A tile's bytes and their entity tag. */
export type TileBytes = { readonly bytes: Uint8Array; readonly etag: string };

/** A tile, `width` entries or hashes wide. `gzipped` compresses it once, for the peer that calls first. */
export type CachedTile = TileBytes & {
  readonly width: number;
  readonly gzipped: (peer?: string) => Promise<Uint8Array>;
};

/** Caches the tiles that were read last. */
type TileCache = {
  /**
   * The cached tile of this name if it is at least `width` wide, else the result of `read`. Concurrent requests for the
   * same tile share one read. Throws `service.unavailable` if too many reads are queued.
   *
   * @param read returns the tile, `widest` wide
   */
  get(wanted: Wanted, read: () => Promise<TileBytes>): CachedTile | Promise<CachedTile>;
};

type Wanted = { name: string; width: number; widest: number; peer: string | undefined };

/** Holds 200 full entry bundles, or 150 with their compressed forms. */
const CACHE_BYTES = 32 * 1024 * 1024;
/** Memory that a cached tile takes beside its bytes. */
const OVERHEAD_BYTES = 500;
/**
 * Concurrent reads and compressions, and how many may queue for one. With rests, 48 connections that read every entry bundle
 * leave two thirds of the creates (1,110 of 1,600 a second, p99 45 ms, and get 1,120 tiles a second), without a quarter (420 of
 * 1,800, p99 110 ms, and 1,550 tiles).
 */
const LIMITS = { maxConcurrent: 1, maxQueued: 50, rest: 1 };
/** When a rejected client should retry. */
const RETRY_SECONDS = 1;
/** Entries are base64 text, a third of it the same in all: higher levels save little and take longer. */
const COMPRESSION = { level: 1 };
const compress = promisify(gzip);

/** An empty cache. */
export function createTileCache(): TileCache {
  const cache = new LRUCache<string, CachedTile>({ maxSize: CACHE_BYTES });
  const readsInFlight = new Map<string, Promise<CachedTile>>();
  const limited = limitConcurrency(LIMITS, () =>
    unavailable('too many tiles are requested at once', RETRY_SECONDS),
  );

  const keep = (name: string, width: number, { bytes, etag }: TileBytes): CachedTile => {
    let zipping: Promise<Uint8Array> | undefined;
    const zip = async (peer: string | undefined) => {
      const zipped = await limited(() => compress(bytes, COMPRESSION), peer);
      const size = bytes.length + zipped.length + OVERHEAD_BYTES;
      if (cache.peek(name) === tile) cache.set(name, tile, { size });
      return zipped;
    };
    const gzipped = (peer?: string) => {
      zipping ??= zip(peer).catch((error: unknown) => {
        zipping = undefined;
        throw error;
      });
      return zipping;
    };
    const tile = { width, bytes, etag, gzipped };
    cache.set(name, tile, { size: bytes.length + OVERHEAD_BYTES });
    return tile;
  };

  return {
    get({ name, width, widest, peer }, read) {
      const known = cache.get(name);
      if (known !== undefined && known.width >= width) return known;
      const key = `${name} ${widest}`;
      const reading =
        readsInFlight.get(key) ??
        limited(async () => keep(name, widest, await read()), peer).finally(() => readsInFlight.delete(key));
      readsInFlight.set(key, reading);
      return reading;
    },
  };
}
