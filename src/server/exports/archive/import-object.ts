/** Reads the object of an archived batch: every line is checked, and put into the tables within the import's transaction. */
import { createHash } from 'node:crypto';
import { fromUtf8 } from '../../../proof/bytes/encoding.js';
import { FormatError } from '../../../proof/bytes/format-error.js';
import type { ManifestObject } from '../../../proof/export/manifest-fields.js';
import { extendTiles, rightEdgeTiles, type Tile } from '../../../proof/log/tile.js';
import type { Sql } from '../../database/connect.js';
import type { Log } from '../../log/store/logs.js';
import { writeTiles } from '../../log/store/tiles.js';
import type { OperatorStore } from '../destinations/operator-store.js';
import { ArchiveError } from './archive-error.js';
import { checkBatch } from './check-batch.js';
import { checkRow, type RowsOf } from './check-row.js';
import { insertBatchRecord, insertRows } from './import-rows.js';
import { openMembers, parseJson } from './members.js';
import { inflate, splitLines } from './object-lines.js';
import { readPieces } from './stored-objects.js';

/** What an import holds: `tree` is the log up to the batch before, with the tiles on its right edge. */
export type Importing = {
  readonly tx: Sql;
  readonly storage: OperatorStore;
  readonly signal: AbortSignal;
  readonly log: Log;
  readonly rowsOf: RowsOf;
  readonly policies: ReadonlyMap<number, number>;
  readonly onLeaves: (leaves: number) => void;
  tree: { size: number; tiles: readonly Tile[]; rootHash: Uint8Array };
};

/** Rows that are inserted at once. */
const PAGE = 500;

/** Imports the next batch of the log. Throws ArchiveError if anything of its object is not as the manifest or the leaf has it. */
export async function importObject(
  importing: Importing,
  folder: string,
  object: ManifestObject,
): Promise<void> {
  const { tx, log, policies } = importing;
  const name = `${folder}/${object.name}`;
  const leaves: Uint8Array[] = [];
  let record: unknown;
  try {
    for await (const page of readRows(importing, name, object)) {
      record ??= page.batch;
      leaves.push(...page.leafHashes);
      await insertRows(tx, log.id, page.ids, `[${page.rows.join()}]`);
      importing.onLeaves(page.ids.length);
    }
  } catch (error) {
    throw explained(name, error);
  }
  const { treeSize, batchId, firstIndex } = object;
  if (leaves.length !== treeSize - firstIndex)
    throw new ArchiveError(`${name} has ${leaves.length} lines, not ${treeSize - firstIndex}`);
  const { root, tiles } = extendTiles(importing.tree, leaves);
  const rootHash = Buffer.from(root).toString('hex');
  await checkBatch(record, { batchId, firstIndex, treeSize, rootHash }, log).catch((error: unknown) => {
    throw explained(name, error);
  });
  await writeTiles(tx, log.id, tiles);
  const { policy_version: version } = record as { policy_version: number };
  const policyVersion = policies.get(version);
  if (policyVersion === undefined) throw new ArchiveError(`${name}: log.json has no policy ${version}`);
  await insertBatchRecord(tx, log.id, policyVersion, JSON.stringify(record));
  importing.tree = {
    size: treeSize,
    tiles: edgeOf(treeSize, [...tiles, ...importing.tree.tiles]),
    rootHash: root,
  };
}

/** The tiles on the right edge; the newer ones come first. */
function edgeOf(size: number, tiles: readonly Tile[]): Tile[] {
  return rightEdgeTiles(size).flatMap(({ level, index }) =>
    tiles.filter((tile) => tile.level === level && tile.index === index).slice(0, 1),
  );
}

function explained(name: string, error: unknown): unknown {
  const { code = '' } = error as NodeJS.ErrnoException;
  if (code.startsWith?.('Z_')) return new ArchiveError(`${name} is not a whole gzip file`);
  const isOfArchive = error instanceof FormatError || error instanceof ArchiveError;
  return isOfArchive ? new ArchiveError(`${name}: ${error.message}`) : error;
}

/** Checked rows in JSON, their ids and leaf hashes, and the batch's record with the first. */
type Page = { ids: string[]; rows: string[]; leafHashes: Uint8Array[]; batch: unknown };

async function* readRows(
  { storage, signal, rowsOf }: Importing,
  name: string,
  { firstIndex, treeSize, bytes: expected, sha256 }: ManifestObject,
): AsyncGenerator<Page> {
  const hash = createHash('sha256');
  let bytes = 0;
  async function* stored() {
    // One byte more than it should have, which must not be there.
    for await (const piece of readPieces(storage, name, expected + 1, signal)) {
      hash.update(piece);
      bytes += piece.length;
      yield piece;
    }
  }
  const seen = new Set<string>();
  let page: Page = { ids: [], rows: [], leafHashes: [], batch: undefined };
  let next = firstIndex;
  for await (const line of splitLines(inflate(stored(), () => bytes))) {
    if (next === treeSize) throw new ArchiveError('it has more lines than its batch has leaves');
    const { row, batch } = parseJson(fromUtf8(line), 'a line') as { row: unknown; batch: unknown };
    const { id, leafHash } = checkRow(openMembers(row, `leaf ${next}`), next, rowsOf);
    if (seen.has(id)) throw new ArchiveError(`the submission ${id} occurs twice`);
    seen.add(id);
    page.ids.push(id);
    page.rows.push(JSON.stringify(row));
    page.leafHashes.push(Buffer.from(leafHash, 'hex'));
    if (next === firstIndex) page.batch = batch;
    next++;
    if (page.ids.length < PAGE) continue;
    yield page;
    page = { ids: [], rows: [], leafHashes: [], batch: undefined };
  }
  if (page.ids.length > 0) yield page;
  if (bytes !== expected || hash.digest('hex') !== sha256)
    throw new ArchiveError('its bytes are not those that its manifest lists');
}
