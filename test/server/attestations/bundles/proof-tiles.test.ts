import t, { type Test } from 'tap';
import { toBase64, utf8 } from '../../../../src/proof/bytes/encoding.js';
import { leafHash } from '../../../../src/proof/log/merkle.js';
import { extendTiles, readFrom } from '../../../../src/proof/log/tile.js';
import { inclusionProof } from '../../../../src/proof/log/tile-proof.js';
import { createProofTiles } from '../../../../src/server/attestations/bundles/proof-tiles.js';
import { connectPool, type Pool } from '../../../../src/server/database/connect.js';
import { fillTileNodes, ownTiles, writeTiles } from '../../../../src/server/log/store/tiles.js';
import { testDatabase } from '../../../support/servers/shared-servers.js';

const LOG_ID = 1;
const SIZE = 66_300;
const leaves = Array.from({ length: SIZE }, (_, i) => leafHash(utf8(`leaf ${i}`)));
const whole = extendTiles({ size: 0, tiles: [] }, leaves);
const readTile = readFrom(whole.tiles);

/** Full tiles of three levels; 66,048 and 66,300 leaves end in tiles of 0 and 252 hashes. */
const CLAIMS = [
  [0, [1, 2, 17, 256, 257, 65_537, SIZE]],
  [255, [256, 4_000, 66_048]],
  [40_000, [40_001, 65_536, SIZE]],
  [66_047, [66_048, SIZE]],
  [SIZE - 1, [SIZE]],
] as const;

/** Reads the tiles that come with a submission's row. */
async function readOwnTiles(pool: Pool, logIndex: number): Promise<string | null> {
  const [row] = await pool<{ own: string | null }[]>`
    SELECT (${ownTiles(pool)}) AS own FROM (VALUES (${LOG_ID}::integer, ${logIndex}::bigint)) s(log_id, log_index)`;
  return row?.own ?? null;
}

/**
 * Compares proofs from the database, read by a process without cached tiles and with the tiles of the leaf, with those
 * of the tree in memory.
 */
async function proofsAreRight(t: Test, pool: Pool, when: string): Promise<void> {
  const [tiles, others] = [createProofTiles(pool), createProofTiles(pool)];
  const proofs = await Promise.all(CLAIMS.map(([index, sizes]) => tiles.prove(LOG_ID, index, sizes)));
  const withOwn = await Promise.all(
    CLAIMS.map(async ([index, sizes]) => others.prove(LOG_ID, index, sizes, await readOwnTiles(pool, index))),
  );
  const expected = CLAIMS.map(([index, sizes]) => sizes.map((size) => inclusionProof(index, size, readTile)));
  const spelled = expected.map((one) => one.map((proof) => proof.map((h) => `"${toBase64(h)}"`).join()));
  const texts = (one: Buffer[][]) => one.map((proof) => proof.map(String));
  t.strictSame(texts(proofs), spelled, when);
  t.strictSame(texts(withOwn), spelled, `${when}, with the tiles of the leaf`);
}

t.test('proofs are the same before and after the nodes of old tiles are stored', async (t) => {
  const pool = connectPool({ url: await testDatabase(t), name: 'test', max: 2, statementTimeoutMs: 60_000 });
  t.teardown(() => pool.end({ timeout: 1 }));
  await writeTiles(pool, LOG_ID, extendTiles({ size: 0, tiles: [] }, leaves.slice(0, 66_100)).tiles);
  // As the version before writes the tiles that grow.
  for (const { level, index, hashes } of whole.tiles.filter(({ level, index }) => level > 0 || index > 255)) {
    await pool`
      INSERT INTO tile (log_id, level, tile_index, hashes) VALUES (${LOG_ID}, ${level}, ${index}, ${hashes})
      ON CONFLICT (log_id, level, tile_index) DO UPDATE SET hashes = excluded.hashes`;
  }
  await proofsAreRight(t, pool, 'with nodes of fewer hashes than the tile has');
  await pool`UPDATE tile SET nodes = NULL`;
  await proofsAreRight(t, pool, 'without nodes');
  t.equal(await fillTileNodes(pool, 100), 100);
  await proofsAreRight(t, pool, 'while they are stored');
  while ((await fillTileNodes(pool, 100)) > 0);
  await proofsAreRight(t, pool, 'afterwards');
  const [left] = await pool<{ full: number; partial: number }[]>`
    SELECT count(*) FILTER (WHERE octet_length(hashes) = 8192) AS full, count(*) AS partial
    FROM tile WHERE nodes IS NULL`;
  t.same(left, { full: 0, partial: 3 }, 'those on the right edge get theirs as they grow');
  await pool`UPDATE tile SET nodes = NULL`;
  await pool`DELETE FROM tile WHERE octet_length(hashes) < 8192`;
  await writeTiles(pool, LOG_ID, whole.tiles);
  await proofsAreRight(t, pool, 'beside tiles that this version writes');
  while ((await fillTileNodes(pool, 100)) > 0);
  const own = await Promise.all([0, 40_000, 66_047, 66_287, 66_288].map((i) => readOwnTiles(pool, i)));
  const bytes = own.map((one) => one && Buffer.from(one, 'base64').length);
  t.same(bytes, [1024, 1024, 1024, 512 + 15 * 32, null], 'without that of a leaf whose tile is not full');
});

t.test('a proof that the stored tiles do not have is an error', async (t) => {
  const pool = connectPool({ url: await testDatabase(t), name: 'test', max: 2, statementTimeoutMs: 60_000 });
  t.teardown(() => pool.end({ timeout: 1 }));
  await writeTiles(pool, LOG_ID, whole.tiles);
  const tiles = createProofTiles(pool);
  await t.rejects(tiles.prove(LOG_ID, 3, [SIZE + 1]), /tile \d\/\d+ holds fewer/);
  await t.rejects(tiles.prove(LOG_ID + 1, 3, [SIZE]), /tile \d\/\d+ holds fewer/);
});
