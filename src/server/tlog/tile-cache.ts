import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import { etagOf } from '../core/etag.js';
import { createConcurrencyLimit } from './concurrency-limit.js';

/** A tile as wide as the log had it when it was read, its entity tag, and how to have it compressed. */
export type CachedTile = {
  readonly width: number;
  readonly bytes: Uint8Array;
  readonly etag: string;
  readonly gzipped: () => Promise<Uint8Array>;
};

/** Reads tiles, and keeps those that were asked for last. */
export type TileCache = {
  /**
   * The tile of this name, if it is kept `width` wide or wider, else as `read` has it. Throws `service.unavailable`
   * when too many are being read.
   *
   * @param read gives a tile of the width `widest`
   */
  get(
    name: string,
    width: number,
    widest: number,
    read: () => Promise<Uint8Array>,
  ): CachedTile | Promise<CachedTile>;
};

/** Two hundred full entry bundles, or a hundred and fifty with their compressed forms. */
const CACHE_BYTES = 32 * 1024 * 1024;
/** Besides its bytes. */
const OVERHEAD_BYTES = 500;
/** Tiles that are read or compressed at once, and how many wait for that. */
const CONCURRENCY = { atOnce: 2, waiting: 50 };
/** Entries are text of base64, a third of it the same in all: better compression saves little and takes longer. */
const COMPRESSION = { level: 1 };
const compress = promisify(gzip);

/** Of each tile that is asked for several times at once, one is read. */
export function createTileCache(): TileCache {
  const cache = new LRUCache<string, CachedTile>({ maxSize: CACHE_BYTES });
  const readsInFlight = new Map<string, Promise<CachedTile>>();
  const limited = createConcurrencyLimit(CONCURRENCY);

  const keep = (name: string, width: number, bytes: Uint8Array): CachedTile => {
    let zipping: Promise<Uint8Array> | undefined;
    const zip = async () => {
      const zipped = await limited(() => compress(bytes, COMPRESSION));
      const size = bytes.length + zipped.length + OVERHEAD_BYTES;
      if (cache.peek(name) === tile) cache.set(name, tile, { size });
      return zipped;
    };
    const gzipped = () => {
      zipping ??= zip().catch((error: unknown) => {
        zipping = undefined;
        throw error;
      });
      return zipping;
    };
    const tile = { width, bytes, etag: etagOf(bytes), gzipped };
    cache.set(name, tile, { size: bytes.length + OVERHEAD_BYTES });
    return tile;
  };

  return {
    get(name, width, widest, read) {
      const known = cache.get(name);
      if (known !== undefined && known.width >= width) return known;
      const key = `${name} ${widest}`;
      const reading =
        readsInFlight.get(key) ??
        limited(async () => keep(name, widest, await read())).finally(() => readsInFlight.delete(key));
      readsInFlight.set(key, reading);
      return reading;
    },
  };
}
