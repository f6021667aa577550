import { type CheckpointSigner, signCheckpoint } from '../../proof/log/checkpoint.js';
import { firstEntries } from '../../proof/log/entries.js';
import { emptyRoot, HASH_BYTES } from '../../proof/log/merkle.js';
import { tileWidth } from '../../proof/log/tile.js';
import { parseTilePath, TILE_WIDTH, type TileAddress } from '../../proof/log/tile-path.js';
import { etagOf } from '../core/etag.js';
import type { LogCache } from '../logs/log-cache.js';
import { gather } from '../store/database/batch-loader.js';
import type { Pool } from '../store/database/connect.js';
import { findNewestPublishedBatch } from '../store/log/batches.js';
import type { Log } from '../store/log/logs.js';
import { findTiles } from '../store/log/tiles.js';
import { readEntryBundle } from './entry-bundle.js';
import { type CachedTile, createTileCache } from './tile-cache.js';

/** Reads a log as C2SP tlog-tiles publishes it; nothing beyond its newest published checkpoint is ever shown. */
export type LogReader = {
  /**
   * The newest published checkpoint, a signed note. Before the first batch it is of size 0, signed here; undefined for
   * a log that was frozen before it had one, since nothing is signed for that any more.
   */
  readCheckpoint(log: Log): Promise<string | undefined>;
  /**
   * A tile or an entry bundle by its path below the log's address; undefined when the log has no such tile. Throws
   * `service.unavailable` when too many are asked for.
   */
  readTile(log: Log, path: string): Promise<PublicTile | undefined>;
};

/** A tile's bytes and their entity tag. A full tile, and a partial one of a given width, never change. */
export type PublicTile = Pick<CachedTile, 'bytes' | 'etag'> & Partial<Pick<CachedTile, 'gzipped'>>;

const BATCH_LOADING = { maxKeys: 10, maxInFlight: 2 };

/**
 * A reader over the tables. What lies below a size that was published once is looked for without asking how far the
 * log has come since.
 */
export function createLogReader(
  pool: Pool,
  logCache: LogCache,
  signerOf: (log: Log) => CheckpointSigner,
): LogReader {
  const tileCache = createTileCache();
  const emptyNotes = new Map<number, string>();
  const sizes = new Map<number, number>();
  const findNewest = gather(async (ids) => {
    const newest = await Promise.all(ids.map((id) => findNewestPublishedBatch(pool, Number(id))));
    return new Map(newest.flatMap((batch) => (batch === undefined ? [] : [[String(batch.logId), batch]])));
  }, BATCH_LOADING);
  const readNewest = async ({ id }: Log) => {
    const batch = await findNewest(String(id));
    if (batch !== undefined) sizes.set(id, Math.max(batch.treeSize, sizes.get(id) ?? 0));
    return batch;
  };
  const signEmpty = (log: Log): string => {
    const note = signCheckpoint({ origin: log.origin, size: 0, rootHash: emptyRoot() }, signerOf(log));
    emptyNotes.set(log.id, note);
    return note;
  };
  return {
    async readCheckpoint(log) {
      const newest = await readNewest(log);
      if (newest !== undefined) return newest.note;
      return log.frozenAt === null ? (emptyNotes.get(log.id) ?? signEmpty(log)) : undefined;
    },
    async readTile(log, path) {
      const address = parseTilePath(path);
      if (address === undefined) return undefined;
      let widest = widthIn(address, sizes.get(log.id));
      if (widest < address.width) {
        await readNewest(log);
        widest = widthIn(address, sizes.get(log.id));
      }
      if (widest < address.width) return undefined;
      const whole = { ...address, width: widest };
      const name = `${log.id}/${address.level}/${address.index}`;
      const tile = await tileCache.get(name, address.width, widest, () => read(pool, logCache, log, whole));
      return tile.width === address.width ? tile : cut(tile, address);
    },
  };
}

/** How wide a tile is in a tree of this size. */
function widthIn({ level, index }: TileAddress, size = 0): number {
  return tileWidth(level === 'entries' ? 0 : level, index, size);
}

/** Who asks for less than the log has is an exception: what he gets is neither kept nor compressed. */
function cut({ bytes }: CachedTile, { level, width }: TileAddress): PublicTile {
  const part = level === 'entries' ? firstEntries(bytes, width) : bytes.subarray(0, width * HASH_BYTES);
  return { bytes: part, etag: etagOf(part) };
}

/** What is served is kept by caches for ever, so a part is never taken for the whole, whatever became of the tables. */
async function read(
  pool: Pool,
  logCache: LogCache,
  log: Log,
  { level, index, width }: TileAddress,
): Promise<Uint8Array> {
  const first = index * TILE_WIDTH;
  if (level === 'entries') return readEntryBundle(pool, logCache, log, first, first + width);
  const [tile] = await findTiles(pool, [{ logId: log.id, level, index }]);
  const hashes = tile?.hashes.subarray(0, width * HASH_BYTES) ?? new Uint8Array();
  if (hashes.length === width * HASH_BYTES) return hashes;
  throw new Error(`the tile ${level}/${index} of ${log.origin} has not ${width} hashes`);
}
