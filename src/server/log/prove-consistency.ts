import { readFrom } from '../../proof/log/tile.js';
import { consistencyProof, tilesForConsistency } from '../../proof/log/tile-proof.js';
import type { Sql } from '../database/connect.js';
import { findTiles } from './store/tiles.js';

/**
 * The RFC 6962 consistency proof between two sizes of a log, from its tiles. Throws FormatError if `fromSize` is the
 * larger.
 */
export async function proveConsistency(
  sql: Sql,
  logId: number,
  fromSize: number,
  toSize: number,
): Promise<Uint8Array[]> {
  const places = tilesForConsistency(fromSize, toSize).map((ref) => ({ ...ref, logId }));
  return consistencyProof(fromSize, toSize, readFrom(await findTiles(sql, places)));
}
