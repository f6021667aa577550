import { encodeEntries } from '../proof/entries.js';
import { rebuildLeaf } from '../proof/leaf.js';
import { HASH_BYTES } from '../proof/merkle.js';
import { statementBytes } from '../proof/statement.js';
import { tileWidth } from '../proof/tile.js';
import { parseTilePath, TILE_WIDTH, type TileAddress } from '../proof/tile-path.js';
import { statementOf } from '../rpc/bundles.js';
import type { Directory } from '../rpc/directory.js';
import { findNewestPublishedBatch } from '../store/batches.js';
import type { Pool } from '../store/connect.js';
import type { Log } from '../store/logs.js';
import { readSubmissions } from '../store/submissions.js';
import { findTiles } from '../store/tiles.js';

/** Reads a log as C2SP tlog-tiles publishes it; nothing beyond its newest published checkpoint is ever shown. */
export type LogReader = {
  /** The newest published checkpoint, a signed note; undefined before the first batch. */
  checkpoint(log: Log): Promise<string | undefined>;
  /** A tile or an entry bundle by its path below the log's address; undefined when the log has no such tile. */
  tile(log: Log, path: string): Promise<PublicTile | undefined>;
};

/** A tile's bytes. A full tile, and a partial one of a given width, never change. */
export type PublicTile = { bytes: Uint8Array; contentType: string };

/** A reader over the tables. */
export function createLogReader(pool: Pool, directory: Directory): LogReader {
  return {
    checkpoint: async (log) => (await findNewestPublishedBatch(pool, log.id))?.note,
    tile: async (log, path) => {
      const address = parseTilePath(path);
      const size = (await findNewestPublishedBatch(pool, log.id))?.treeSize ?? 0;
      if (address === undefined || !isInTree(address, size)) return undefined;
      return address.level === 'entries'
        ? readEntries(pool, directory, log, address)
        : readTile(pool, log, address);
    },
  };
}

function isInTree({ level, index, width }: TileAddress, size: number): boolean {
  return tileWidth(level === 'entries' ? 0 : level, index, size) >= width;
}

async function readTile(
  pool: Pool,
  log: Log,
  { level, index, width }: TileAddress,
): Promise<PublicTile | undefined> {
  if (level === 'entries') return undefined;
  const [tile] = await findTiles(pool, [{ logId: log.id, level, index }]);
  const bytes = tile?.hashes.subarray(0, width * HASH_BYTES) ?? new Uint8Array();
  assertWhole(bytes.length / HASH_BYTES, width, `tile ${level}/${index} of ${log.origin}`);
  return { bytes, contentType: 'application/octet-stream' };
}

/** The leaf records of a tile, rebuilt from the rows that their submissions keep. */
async function readEntries(
  pool: Pool,
  directory: Directory,
  log: Log,
  { index, width }: TileAddress,
): Promise<PublicTile> {
  const first = index * TILE_WIDTH;
  const rows = await readSubmissions(pool, log.id, first, first + width);
  assertWhole(rows.length, width, `the entries ${first} to ${first + width} of ${log.origin}`);
  const records = await Promise.all(
    rows.map(async (row) => {
      const { spki } = await directory.getDsseKey(row.dsseKeyId);
      return rebuildLeaf(statementBytes(statementOf(row, log.environment)), row.signature, spki).record;
    }),
  );
  return { bytes: encodeEntries(records), contentType: 'application/octet-stream' };
}

/** What is served is kept by caches for ever, so a part is never taken for the whole, whatever became of the tables. */
function assertWhole(found: number, width: number, what: string): void {
  if (found !== width) throw new Error(`${what}: ${found} are there, not ${width}`);
}
