/** Reads a restored backup: derives each log again from the rows of its submissions, and compares all that is stored of it. */

import { concatBytes, toBase64 } from '../../proof/bytes/encoding.js';
import { FormatError } from '../../proof/bytes/format-error.js';
import { equalBytes } from '../../proof/bytes/primitives.js';
import {
  type AuditedTree,
  contradiction,
  EMPTY_TREE,
  entryBundles,
  type ShownCheckpoint,
  startAudit,
} from '../../proof/log/audit.js';
import { openCheckpoint } from '../../proof/log/checkpoint.js';
import { HASH_BYTES } from '../../proof/log/merkle.js';
import { noteKey } from '../../proof/log/note.js';
import { readFrom, rightEdgeTiles, rootFromTiles, tileWidth } from '../../proof/log/tile.js';
import { TILE_WIDTH } from '../../proof/log/tile-path.js';
import type { Pool } from '../database/connect.js';
import { openLogCache } from '../log/log-cache.js';
import { findNewestBatch, findStandingBatches } from '../log/store/batches.js';
import { listDsseKeys } from '../log/store/dsse-keys.js';
import { readLeafHashes, readLogSize } from '../log/store/leaves.js';
import { type Log, listLogs } from '../log/store/logs.js';
import { findTiles } from '../log/store/tiles.js';
import { readEntryBundle } from '../public/entry-bundle.js';

/** A log of a backup: its leaves, and the newest batch. */
export type BackedUpLog = Pick<Log, 'origin' | 'publicKey'> & {
  readonly leaves: number;
  readonly newest: { readonly treeSize: number; readonly sealedAt: Date } | undefined;
};

/** A log as its rows give it. `problems`: what is stored and does not follow from them, at most a hundred. */
export type DerivedLog = {
  readonly problems: readonly string[];
  readonly batches: number;
  /** The root of all leaves. */
  readonly rootHash: Uint8Array;
};

/** A restored backup. */
export type BackupReader = {
  list(): Promise<BackedUpLog[]>;
  /** Derives a log and compares its rows, tiles and batches, and these checkpoints. `onRead` gets numbers of leaves. */
  derive(
    log: BackedUpLog,
    checkpoints: readonly ShownCheckpoint[],
    onRead: (leaves: number) => void,
  ): Promise<DerivedLog>;
};

/** Leaves between which the checkpoints of batches are read. */
const SEGMENT = 256 * TILE_WIDTH;
const MAX_PROBLEMS = 100;

/** Opens a reader over a database, which it does not change. */
export async function openBackup(pool: Pool): Promise<BackupReader> {
  const logCache = await openLogCache(pool);
  const found = new Map((await listLogs(pool)).map((log) => [log.origin, log]));
  return {
    list: () => Promise.all([...found.values()].map((log) => describe(pool, log))),
    async derive({ origin, leaves }, checkpoints, onRead) {
      const log = found.get(origin);
      if (log === undefined) throw new Error(`the backup has no log ${origin}`);
      const keys = new Set((await listDsseKeys(pool)).map(({ spki }) => toBase64(spki)));
      const problems: string[] = [];
      let tree: AuditedTree = await readArchivedTree(pool, log);
      problems.push(...(await checkArchived(pool, log, rootFromTiles(tree.size, readFrom(tree.tiles)))));
      let batches = 0;
      while (tree.size < leaves) {
        const end = Math.min(leaves, tree.size + SEGMENT);
        const own = await readBatches(pool, log, tree.size, end);
        batches += own.length;
        const all = [...own, ...checkpoints.filter(({ size }) => size > tree.size && size <= end)];
        const isTrustedKey = (spki: Uint8Array) => keys.has(toBase64(spki));
        const audit = startAudit({ start: tree, checkpoints: all, isTrustedKey });
        for (const address of entryBundles(tree.size, end)) {
          const first = address.index * TILE_WIDTH;
          const { bytes } = await readEntryBundle(pool, logCache, log, first, first + address.width);
          const { leaves: hashes } = audit.add(bytes, address);
          problems.push(...(await compareStored(pool, log, first, hashes)));
          onRead(address.width);
        }
        problems.push(
          ...audit.problems,
          ...audit.contradicted.map(({ checkpoint, derived }) => contradiction(checkpoint, derived)),
        );
        tree = audit.tree;
        if (problems.length >= MAX_PROBLEMS) break;
      }
      problems.push(...(await checkNewestNote(pool, log)));
      const rootHash = rootFromTiles(tree.size, readFrom(tree.tiles));
      return { problems: problems.slice(0, MAX_PROBLEMS), batches, rootHash };
    },
  };
}

/** The part of a log without rows, as its tiles have it: what follows it derives from them. */
async function readArchivedTree(pool: Pool, { id, archivedSize: size }: Log): Promise<AuditedTree> {
  if (size === 0) return EMPTY_TREE;
  const found = await findTiles(
    pool,
    rightEdgeTiles(size).map((place) => ({ ...place, logId: id })),
  );
  const tiles = found.map(({ level, index, hashes }) => ({
    level,
    index,
    hashes: hashes.subarray(0, tileWidth(level, index, size) * HASH_BYTES),
  }));
  return { size, tiles };
}

/** Compares the root of the archived leaves with the batch that ends there, if one does. */
async function checkArchived(pool: Pool, { id, archivedSize }: Log, rootHash: Uint8Array): Promise<string[]> {
  if (archivedSize === 0) return [];
  const { ofSize } = await findStandingBatches(pool, id, archivedSize);
  if (ofSize === undefined || equalBytes(ofSize.rootHash, rootHash)) return [];
  return [`the tiles of the ${archivedSize} archived leaves have another root than batch ${ofSize.id}`];
}

async function describe(pool: Pool, log: Log): Promise<BackedUpLog> {
  const newest = await findNewestBatch(pool, log.id);
  return {
    origin: log.origin,
    publicKey: log.publicKey,
    leaves: await readLogSize(pool, log.id),
    newest: newest && { treeSize: newest.treeSize, sealedAt: newest.sealedAt },
  };
}

/** The checkpoints of the batches that end in `(start, end]`. */
async function readBatches(pool: Pool, log: Log, start: number, end: number): Promise<ShownCheckpoint[]> {
  const rows = await pool<{ id: string; size: number; rootHash: Uint8Array }[]>`
    SELECT id, tree_size AS size, root_hash AS "rootHash" FROM batch
    WHERE log_id = ${log.id} AND tree_size > ${start} AND tree_size <= ${end}`;
  return rows.map(({ id, ...batch }) => ({ origin: log.origin, from: `batch ${id}`, ...batch }));
}

/** Compares the stored hashes of leaves `[first, …)`, and the tile that proofs read them from, with those that follow from the rows. */
async function compareStored(pool: Pool, log: Log, first: number, hashes: Uint8Array): Promise<string[]> {
  const count = hashes.length / HASH_BYTES;
  const [stored, [tile]] = await Promise.all([
    readLeafHashes(pool, log.id, first, first + count),
    findTiles(pool, [{ logId: log.id, level: 0, index: first / TILE_WIDTH }]),
  ]);
  const range = `leaves ${first} to ${first + count - 1}`;
  const problems: string[] = [];
  if (!equalBytes(concatBytes(...stored), hashes))
    problems.push(`the stored hashes of ${range} are not those of their rows`);
  const tiled = tile?.hashes ?? new Uint8Array();
  const compared = Math.min(tiled.length, hashes.length);
  const isOfRows = equalBytes(tiled.subarray(0, compared), hashes.subarray(0, compared));
  // A log that goes on meanwhile has a longer tile, and the rows of it.
  const hasRows =
    tiled.length <= hashes.length || first + tiled.length / HASH_BYTES <= (await readLogSize(pool, log.id));
  if (!isOfRows || !hasRows) problems.push(`the tile of ${range} is not that of their rows`);
  return problems;
}

async function checkNewestNote(pool: Pool, log: Log): Promise<string[]> {
  const newest = await findNewestBatch(pool, log.id);
  if (newest === undefined) return [];
  try {
    const { size, rootHash } = await openCheckpoint(newest.note, noteKey(log.origin, log.publicKey));
    if (size === newest.treeSize && equalBytes(rootHash, newest.rootHash)) return [];
    return [`the checkpoint of batch ${newest.id} is another one`];
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    return [`the checkpoint of batch ${newest.id}: ${error.message}`];
  }
}
