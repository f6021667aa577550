/**
 * Consumes: published batches beyond the checkpoint in LOG_STORAGE.
 * Commit point: the checkpoint's object. It is written after the tiles and entry bundles that it covers and the trust
 * roots, over the version that was read before the tables were.
 * Emits: nothing.
 * A crash leaves: tiles, which the next run finds in their place.
 */
import { equalBytes } from '../../../proof/bytes/primitives.js';
import { parseCheckpoint } from '../../../proof/log/checkpoint.js';
import { emptyRoot, HASH_BYTES } from '../../../proof/log/merkle.js';
import { tileWidth } from '../../../proof/log/tile.js';
import { TILE_WIDTH, type TileAddress, tilePath } from '../../../proof/log/tile-path.js';
import { type BatchRow, findBatchBelow, findStandingBatches } from '../../log/store/batches.js';
import { type Log, logName } from '../../log/store/logs.js';
import { findTiles } from '../../log/store/tiles.js';
import { readEntryBundle } from '../entry-bundle.js';
import { findNewestCosigned, signEmptyCheckpoint } from '../log-reader.js';
import { CHECKPOINT, TILE } from '../public-files.js';
import { addFile, replaceFile, StorageConflict, type StorageDeps } from './log-storage.js';
import type { RootsStorer } from './store-roots.js';

/** Leaves between two checkpoints while a log that is ahead is written: what a crash repeats. */
const STEP_LEAVES = 65_536;
const PARALLEL = 8;

/** Dependencies of {@link storeLog}. Without its keys in the trust roots an auditor would take a new entry for a forged one. */
export type StoreLogDeps = StorageDeps & Pick<RootsStorer, 'storeTrustRoots'>;

/** A published checkpoint. */
type Published = Pick<BatchRow, 'treeSize' | 'note'>;

/** The checkpoint in the storage. */
type StoredCheckpoint = { size: number; rootHash: Uint8Array; note: string; version: string };

/**
 * Writes a log up to its newest published checkpoint, with the cosignatures that have landed. Throws StorageConflict if the
 * storage has the checkpoint of another history, or one that the tables lack, and writes nothing then.
 *
 * @returns the size of the tree that the storage has
 */
export async function storeLog(deps: StoreLogDeps, log: Log, stepLeaves = STEP_LEAVES): Promise<number> {
  for (;;) {
    const stored = await readStored(deps, log);
    const newest =
      (await findNewestCosigned(deps.pool, log.id)) ?? (await firstCheckpoint(deps, log, stored));
    if (stored !== undefined) await assertContinues(deps, log, stored, newest);
    if (newest === undefined || stored?.note === newest.note) return stored?.size ?? 0;
    const from = stored?.size ?? 0;
    const next = from === newest.treeSize ? newest : await nextBatch(deps, log, { from, stepLeaves, newest });
    for (const group of groups(grownTiles(from, next.treeSize), PARALLEL))
      await Promise.all(group.map((address) => storeTile(deps, log, address)));
    await deps.storeTrustRoots();
    const written = { kind: CHECKPOINT, content: next.note, over: stored };
    if (!(await replaceFile(deps, checkpointName(log), written))) return from;
    if (next.treeSize === newest.treeSize) return newest.treeSize;
    deps.signal.throwIfAborted();
  }
}

function checkpointName(log: Log): string {
  return `log/${logName(log)}/checkpoint`;
}

/** The checkpoint that the storage has. Throws StorageConflict if it is of another log, FormatError if it cannot be read. */
export async function readStored(
  { storage: { store, nameOf, location }, signal }: Pick<StorageDeps, 'storage' | 'signal'>,
  log: Log,
): Promise<StoredCheckpoint | undefined> {
  const name = checkpointName(log);
  const found = await store.readText(nameOf(name), signal);
  if (found === undefined) return undefined;
  const { origin, size, rootHash } = parseCheckpoint(found.text);
  if (origin !== log.origin)
    throw new StorageConflict(`${location(name)} is of the log ${origin}: LOG_STORAGE is another service's`);
  return { size, rootHash, note: found.text, version: found.version };
}

/** That of size 0, of a log that is open and not stored yet. */
async function firstCheckpoint(
  { signerOf }: StorageDeps,
  log: Log,
  stored: StoredCheckpoint | undefined,
): Promise<Published | undefined> {
  if (log.frozenAt !== null) return undefined;
  return {
    treeSize: 0,
    note: stored?.size === 0 ? stored.note : await signEmptyCheckpoint(log, signerOf(log)),
  };
}

/**
 * A published checkpoint is never taken back: throws StorageConflict unless the tables have a batch of the stored size and
 * root.
 */
export async function assertContinues(
  { pool, storage }: Pick<StorageDeps, 'pool' | 'storage'>,
  log: Log,
  { size, rootHash }: StoredCheckpoint,
  newest: Published | undefined,
): Promise<void> {
  if (size === 0 && equalBytes(rootHash, emptyRoot())) return;
  const { ofSize } = await findStandingBatches(pool, log.id, size);
  const isPublished = ofSize !== undefined && newest !== undefined && size <= newest.treeSize;
  if (isPublished && equalBytes(ofSize.rootHash, rootHash)) return;
  const has = isPublished ? 'another root at that size' : `published ${newest?.treeSize ?? 0} leaves`;
  throw new StorageConflict(
    `${storage.location(checkpointName(log))} has a checkpoint of size ${size}, and the database ${has}`,
  );
}

/** The largest published batch within a step, or else the next one. */
async function nextBatch(
  { pool }: StorageDeps,
  log: Log,
  { from, stepLeaves, newest }: { from: number; stepLeaves: number; newest: Published },
): Promise<Published> {
  if (newest.treeSize <= from + stepLeaves) return newest;
  return (await findBatchBelow(pool, log.id, from, from + stepLeaves)) ?? newest;
}

/** The tiles and entry bundles that a tree of `size` leaves has and one of `from` leaves lacks, lowest level first. */
function* grownTiles(from: number, size: number): Generator<TileAddress> {
  for (let level = 0; Math.floor(size / TILE_WIDTH ** level) > 0; level++) {
    const had = Math.floor(from / TILE_WIDTH ** level);
    const has = Math.floor(size / TILE_WIDTH ** level);
    for (let index = Math.floor(had / TILE_WIDTH); had < has && index * TILE_WIDTH < has; index++) {
      const width = tileWidth(level, index, size);
      if (level === 0) yield { level: 'entries', index, width };
      yield { level, index, width };
    }
  }
}

async function storeTile(deps: StorageDeps, log: Log, address: TileAddress): Promise<void> {
  const bytes = await readTile(deps, log, address);
  await addFile(deps, `log/${logName(log)}/${tilePath(address)}`, TILE, bytes);
}

async function readTile(
  { pool, logCache }: StorageDeps,
  log: Log,
  { level, index, width }: TileAddress,
): Promise<Uint8Array> {
  const first = index * TILE_WIDTH;
  if (level === 'entries') return (await readEntryBundle(pool, logCache, log, first, first + width)).bytes;
  const [tile] = await findTiles(pool, [{ logId: log.id, level, index }]);
  const hashes = tile?.hashes.subarray(0, width * HASH_BYTES);
  if (hashes?.length !== width * HASH_BYTES)
    throw new Error(`the tile ${level}/${index} of ${log.origin} has fewer than ${width} hashes`);
  return hashes;
}

function* groups<T>(items: Iterable<T>, size: number): Generator<T[]> {
  let group: T[] = [];
  for (const item of items) {
    group.push(item);
    if (group.length < size) continue;
    yield group;
    group = [];
  }
  if (group.length > 0) yield group;
}
