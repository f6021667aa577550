import type { Tile } from '../../../proof/log/tile.js';
import { byteaArray, type Sql } from '../database/connect.js';

/** The coordinates of a tile. */
type TilePlace = { logId: number; level: number; index: number };

/** Finds the stored tiles at these coordinates, in no order. */
export async function findTiles(
  sql: Sql,
  places: readonly TilePlace[],
): Promise<(TilePlace & { hashes: Uint8Array })[]> {
  return sql<(TilePlace & { hashes: Uint8Array })[]>`
    SELECT t.log_id AS "logId", t.level, t.tile_index AS index, t.hashes
    FROM unnest(${places.map((p) => p.logId)}::integer[], ${places.map((p) => p.level)}::smallint[],
                ${places.map((p) => p.index)}::bigint[]) AS p(log_id, level, index)
    JOIN tile t ON t.log_id = p.log_id AND t.level = p.level AND t.tile_index = p.index`;
}

/** Stores tiles. A stored tile is only replaced by a longer one. */
export async function writeTiles(sql: Sql, logId: number, tiles: readonly Tile[]): Promise<void> {
  await sql`
    INSERT INTO tile (log_id, level, tile_index, hashes)
    SELECT ${logId}, * FROM unnest(
      ${tiles.map((t) => t.level)}::smallint[], ${tiles.map((t) => t.index)}::bigint[],
      ${byteaArray(
        sql,
        tiles.map((t) => t.hashes),
      )})
    ON CONFLICT (log_id, level, tile_index) DO UPDATE SET hashes = excluded.hashes
    WHERE length(excluded.hashes) > length(tile.hashes)`;
}
