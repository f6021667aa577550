import { equalBytes } from '../../proof/bytes/primitives.js';
import {
  extendTiles,
  readFrom,
  rightEdgeTiles,
  rootFromTiles,
  type Tile,
  tileWidth,
} from '../../proof/log/tile.js';
import type { Sql } from '../database/connect.js';
import type { BatchRow } from './store/batches.js';
import { readLeafHashes } from './store/leaves.js';
import type { Log } from './store/logs.js';
import { findTiles } from './store/tiles.js';

/** The end of a log's newest batch. */
type Sealed = Pick<BatchRow, 'treeSize' | 'rootHash'> | undefined;

const HASH_BYTES = 32;

/**
 * Extends a log from its newest batch to `treeSize` by its stored leaves. Stores nothing. Throws if a leaf is missing, or
 * if the stored tiles do not give the newest batch's root.
 *
 * @returns the new root, and each tile that is new or has grown
 */
export async function extendLog(
  sql: Sql,
  log: Log,
  newest: Sealed,
  treeSize: number,
): Promise<{ rootHash: Uint8Array; tiles: Tile[] }> {
  const size = newest?.treeSize ?? 0;
  const [sealedTiles, leafHashes] = await Promise.all([
    readSealedTiles(sql, log, newest),
    readLeafHashes(sql, log.id, size, treeSize),
  ]);
  const { tiles, root } = extendTiles({ size, tiles: sealedTiles }, leafHashes);
  return { rootHash: root, tiles };
}

/** Reads the tiles on the right edge as they were at that size. Throws if their root is not the newest batch's. */
async function readSealedTiles(sql: Sql, log: Log, newest: Sealed): Promise<Tile[]> {
  if (newest === undefined) return [];
  const { treeSize, rootHash } = newest;
  const places = rightEdgeTiles(treeSize).map((ref) => ({ ...ref, logId: log.id }));
  const tiles = (await findTiles(sql, places)).map(({ level, index, hashes }) => {
    const width = tileWidth(level, index, treeSize) * HASH_BYTES;
    return { level, index, hashes: hashes.subarray(0, width) };
  });
  if (!equalBytes(rootFromTiles(treeSize, readFrom(tiles)), rootHash)) {
    throw new Error(`the tiles of ${log.origin} are not those of its checkpoint of size ${treeSize}`);
  }
  return tiles;
}
