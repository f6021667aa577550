import { HASH_BYTES } from '../../../proof/log/merkle.js';
import { HALF_HEIGHT, type Tile, tileRow } from '../../../proof/log/tile.js';
import { TILE_WIDTH } from '../../../proof/log/tile-path.js';
import { byteaArray, type Sql } from '../../database/connect.js';

/** The coordinates of a tile. */
type TilePlace = { logId: number; level: number; index: number };

/** Hashes in a tile of half the height, and their bytes. */
const HALF_WIDTH = 2 ** HALF_HEIGHT;
export const HALF_BYTES = HALF_WIDTH * HASH_BYTES;
const TILE_BYTES = TILE_WIDTH * HASH_BYTES;

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

/**
 * Finds tiles of {@link HALF_HEIGHT}, by the order of their coordinates; omits those that are not stored. Those of even
 * levels are parts of stored tiles, those of odd levels the nodes stored beside them, or what is computed where an older
 * version stored none.
 */
export async function findHalfTiles(
  sql: Sql,
  places: readonly TilePlace[],
): Promise<Map<number, Uint8Array>> {
  const isPart = ({ level }: TilePlace) => level % 2 === 0;
  // Only what is not known comes back: each column costs the client a microsecond a row.
  const rows = await sql<{ n: number; hashes: Uint8Array; whole: boolean }[]>`
    SELECT p.n::integer - 1 AS n, p.part IS NULL AND NOT t.current AS whole,
           CASE WHEN p.part IS NOT NULL THEN substr(t.hashes, p.part * ${HALF_BYTES}::int + 1, ${HALF_BYTES}::int)
                WHEN t.current THEN t.nodes ELSE t.hashes END AS hashes
    FROM unnest(${places.map((p) => p.logId)}::integer[], ${places.map((p) => Math.floor(p.level / 2))}::smallint[],
                ${places.map((p) => (isPart(p) ? Math.floor(p.index / HALF_WIDTH) : p.index))}::bigint[],
                ${places.map((p) => (isPart(p) ? p.index % HALF_WIDTH : null))}::integer[])
      WITH ORDINALITY AS p(log_id, level, tile_index, part, n)
    CROSS JOIN LATERAL (
      SELECT hashes, nodes, coalesce(
        octet_length(nodes) / ${HASH_BYTES}::int = octet_length(hashes) / ${HALF_BYTES}::int, false) AS current
      FROM tile WHERE tile.log_id = p.log_id AND tile.level = p.level AND tile.tile_index = p.tile_index) t`;
  return new Map(rows.map(({ n, hashes, whole }) => [n, whole ? tileRow(hashes, HALF_HEIGHT) : hashes]));
}

/**
 * The tile of {@link HALF_HEIGHT} that holds the leaf of a submission `s`, and the one above it, joined, in base64: what most
 * proofs read once. NULL if that tile is not full, or an older version stored no nodes. For queries that read submissions. As
 * bytea it would be sent in hex, and take the client 4 µs more.
 */
export const ownTiles = (sql: Sql) => sql`
  SELECT encode(substr(t.hashes, p.first, ${HALF_BYTES}::int) || t.nodes, 'base64') AS hashes
  FROM tile t, LATERAL (
    SELECT ((s.log_index % ${TILE_WIDTH}::int) / ${HALF_WIDTH}::int)::int * ${HALF_BYTES}::int + 1 AS first) p
  WHERE t.log_id = s.log_id AND t.level = 0 AND t.tile_index = s.log_index / ${TILE_WIDTH}::int
    AND octet_length(t.hashes) >= p.first - 1 + ${HALF_BYTES}::int
    AND octet_length(t.nodes) / ${HASH_BYTES}::int = octet_length(t.hashes) / ${HALF_BYTES}::int
  LIMIT 1`;

/** Stores tiles, see {@link tileInsertion}. */
export async function writeTiles(sql: Sql, logId: number, tiles: readonly Tile[]): Promise<void> {
  await tileInsertion(sql, logId, tiles);
}

/** The statement that stores tiles. A stored tile is only replaced by a longer one. */
export function tileInsertion(sql: Sql, logId: number, tiles: readonly Tile[]) {
  return sql`
    INSERT INTO tile (log_id, level, tile_index, hashes, nodes)
    SELECT ${logId}, * FROM unnest(
      ${tiles.map((t) => t.level)}::smallint[], ${tiles.map((t) => t.index)}::bigint[],
      ${byteaArray(
        sql,
        tiles.map((t) => t.hashes),
      )},
      ${nodesOf(sql, tiles)})
    ${insteadOfShorter(sql)}`;
}

/**
 * The same for tiles of leaves in a tree of `treeSize`: their hashes are those of the submissions. Sending them would take
 * the client 1 µs a leaf.
 */
export function leafTileInsertion(sql: Sql, logId: number, treeSize: number, tiles: readonly Tile[]) {
  return sql`
    INSERT INTO tile (log_id, level, tile_index, hashes, nodes)
    SELECT ${logId}, 0, p.tile_index, t.hashes, p.nodes
    FROM unnest(${tiles.map((t) => t.index)}::bigint[], ${nodesOf(sql, tiles)}) AS p(tile_index, nodes)
    CROSS JOIN LATERAL (
      SELECT string_agg(s.leaf_hash, ''::bytea ORDER BY s.log_index) AS hashes FROM submission s
      WHERE s.log_id = ${logId} AND s.log_index >= p.tile_index * ${TILE_WIDTH}::int
        AND s.log_index < least((p.tile_index + 1) * ${TILE_WIDTH}::int, ${treeSize}::bigint)) t
    ${insteadOfShorter(sql)}`;
}

function nodesOf(sql: Sql, tiles: readonly Tile[]) {
  return byteaArray(
    sql,
    tiles.map((t) => tileRow(t.hashes, HALF_HEIGHT)),
  );
}

const insteadOfShorter = (sql: Sql) => sql`
  ON CONFLICT (log_id, level, tile_index) DO UPDATE SET hashes = excluded.hashes, nodes = excluded.nodes
  WHERE length(excluded.hashes) > length(tile.hashes)`;

/**
 * Stores the nodes of full tiles that an older version wrote without them. Full tiles never change, so nothing waits
 * for this and several workers may do it at once.
 *
 * @returns how many tiles there were, at most `limit`
 */
export async function fillTileNodes(sql: Sql, limit: number): Promise<number> {
  const tiles = await sql<(TilePlace & { hashes: Uint8Array })[]>`
    SELECT log_id AS "logId", level, tile_index AS index, hashes FROM tile
    WHERE octet_length(hashes) = ${TILE_BYTES}
      AND (nodes IS NULL OR octet_length(nodes) < ${HALF_BYTES}) LIMIT ${limit}`;
  if (tiles.length === 0) return 0;
  await sql`
    UPDATE tile SET nodes = n.nodes
    FROM unnest(${tiles.map((t) => t.logId)}::integer[], ${tiles.map((t) => t.level)}::smallint[],
                ${tiles.map((t) => t.index)}::bigint[],
                ${byteaArray(
                  sql,
                  tiles.map((t) => tileRow(t.hashes, HALF_HEIGHT)),
                )}) AS n(log_id, level, tile_index, nodes)
    WHERE tile.log_id = n.log_id AND tile.level = n.level AND tile.tile_index = n.tile_index`;
  return tiles.length;
}
