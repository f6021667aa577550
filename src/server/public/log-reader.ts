import { fromUtf8 } from '../../proof/bytes/encoding.js';
import { firstEntries } from '../../proof/log/entries.js';
import { type LogSigner, signLogCheckpoint } from '../../proof/log/log-signature.js';
import { emptyRoot, HASH_BYTES } from '../../proof/log/merkle.js';
import { appendSignatures, parseSignatureLines } from '../../proof/log/note.js';
import { tileWidth } from '../../proof/log/tile.js';
import { parseTilePath, TILE_WIDTH, type TileAddress } from '../../proof/log/tile-path.js';
import { etagOf } from '../core/http/etag.js';
import { createBatchLoader } from '../database/batch-loader.js';
import type { Pool } from '../database/connect.js';
import type { LogCache } from '../log/log-cache.js';
import { type BatchRow, findNewestPublishedBatch } from '../log/store/batches.js';
import { getLog, type Log } from '../log/store/logs.js';
import { findTiles } from '../log/store/tiles.js';
import { listCosignatures } from '../witnessing/store/witnesses.js';
import { MissingRowsError, readEntryBundle } from './entry-bundle.js';
import { type CachedTile, createTileCache, type TileBytes } from './tile-cache.js';

/** Reads a log in the form of C2SP tlog-tiles, up to its newest published checkpoint and never beyond. */
export type LogReader = {
  /**
   * The newest published checkpoint, a signed note with the cosignatures that have landed. Before the first batch, a checkpoint of size 0 signed by this
   * process. Returns undefined if the log was frozen before its first batch.
   */
  readCheckpoint(log: Log): Promise<string | undefined>;
  /**
   * Reads a tile or entry bundle by its path below the log's URL, for a peer. Returns undefined if the log has no such tile. Throws
   * `service.unavailable` if too many reads are queued.
   */
  readTile(log: Log, path: string, peer: string | undefined): Promise<PublicTile | undefined>;
};

/** A tile's bytes and entity tag. They never change: a partial tile of a given width has a path of its own. */
type PublicTile = Pick<CachedTile, 'bytes' | 'etag'> & Partial<Pick<CachedTile, 'gzipped'>>;

const BATCH_LOADING = { maxKeys: 10, maxInFlight: 2 };

/** A reader over the tables. It looks up the log's size only for tiles beyond the size it last saw. */
export function createLogReader(
  pool: Pool,
  logCache: LogCache,
  signerOf: (log: Log) => LogSigner,
): LogReader {
  const tileCache = createTileCache();
  const emptyNotes = new Map<number, string>();
  const sizes = new Map<number, number>();
  const findNewest = createBatchLoader(async (ids) => {
    const newest = await Promise.all(ids.map((id) => findNewestCosigned(pool, Number(id))));
    return new Map(newest.flatMap((batch) => (batch === undefined ? [] : [[String(batch.logId), batch]])));
  }, BATCH_LOADING);
  const readNewest = async ({ id }: Log) => {
    const batch = await findNewest(String(id));
    if (batch !== undefined) sizes.set(id, Math.max(batch.treeSize, sizes.get(id) ?? 0));
    return batch;
  };
  const signEmpty = async (log: Log): Promise<string> => {
    const note = await signEmptyCheckpoint(log, signerOf(log));
    emptyNotes.set(log.id, note);
    return note;
  };
  return {
    async readCheckpoint(log) {
      const newest = await readNewest(log);
      if (newest !== undefined) return newest.note;
      return log.frozenAt === null ? (emptyNotes.get(log.id) ?? (await signEmpty(log))) : undefined;
    },
    async readTile(log, path, peer) {
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
      const readWhole = () => read(pool, logCache, log, whole);
      let tile: CachedTile;
      try {
        tile = await tileCache.get({ name, width: address.width, widest, peer }, readWhole);
      } catch (error) {
        if (error instanceof MissingRowsError && (await isArchived(pool, log, address))) return undefined;
        throw error;
      }
      return tile.width === address.width ? tile : cut(tile, address);
    },
  };
}

/** The checkpoint of a log before its first batch. */
export function signEmptyCheckpoint({ origin }: Log, signer: LogSigner): Promise<string> {
  return signLogCheckpoint({ origin, size: 0, rootHash: emptyRoot() }, signer);
}

/** The newest published batch, its note with the cosignatures that have landed for its size. */
export async function findNewestCosigned(pool: Pool, logId: number): Promise<BatchRow | undefined> {
  const batch = await findNewestPublishedBatch(pool, logId);
  if (batch === undefined) return undefined;
  const cosignatures = await listCosignatures(pool, logId, batch.treeSize);
  const lines = cosignatures.flatMap((evidence) => parseSignatureLines(fromUtf8(evidence)));
  return lines.length === 0 ? batch : { ...batch, note: appendSignatures(batch.note, lines) };
}

/** Whether the first of the entries has no row any more: they are in LOG_STORAGE. */
async function isArchived(pool: Pool, { id }: Log, { index }: TileAddress): Promise<boolean> {
  return index * TILE_WIDTH < (await getLog(pool, id)).archivedSize;
}

/** The width of a tile in a tree of this size. */
function widthIn({ level, index }: TileAddress, size = 0): number {
  return tileWidth(level === 'entries' ? 0 : level, index, size);
}

/** A narrower tile than the log has by now. Requests for one are rare, so it is neither cached nor compressed. */
function cut({ bytes }: CachedTile, { level, width }: TileAddress): PublicTile {
  const part = level === 'entries' ? firstEntries(bytes, width) : bytes.subarray(0, width * HASH_BYTES);
  return { bytes: part, etag: etagOf(part) };
}

/** Caches hold tiles for ever, so this throws rather than return fewer hashes than the width says. */
async function read(
  pool: Pool,
  logCache: LogCache,
  log: Log,
  { level, index, width }: TileAddress,
): Promise<TileBytes> {
  const first = index * TILE_WIDTH;
  if (level === 'entries') return readEntryBundle(pool, logCache, log, first, first + width);
  const [tile] = await findTiles(pool, [{ logId: log.id, level, index }]);
  const hashes = tile?.hashes.subarray(0, width * HASH_BYTES) ?? new Uint8Array();
  if (hashes.length === width * HASH_BYTES) return { bytes: hashes, etag: etagOf(hashes) };
  throw new Error(`the tile ${level}/${index} of ${log.origin} has fewer than ${width} hashes`);
}
