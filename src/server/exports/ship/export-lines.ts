import type { ReadTile } from '../../../proof/log/tile.js';
import { TILE_WIDTH } from '../../../proof/log/tile-path.js';
import { tilesForInclusion } from '../../../proof/log/tile-proof.js';
import { createBatchReader } from '../../attestations/bundles/batch-proofs.js';
import { createProofTexts } from '../../attestations/bundles/bundle-template.js';
import {
  countExportedRows,
  createRowReader,
  type ExportedPage,
  listExportedRows,
  logIndexesOf,
} from '../../attestations/submissions/exported-rows.js';
import type { Pool } from '../../database/connect.js';
import { maxTemplateBytes, writeTemplate } from '../../json/template.js';
import type { LogCache } from '../../log/log-cache.js';
import { findTiles } from '../../log/store/tiles.js';
import type { LeasedExport } from '../store/export-leases.js';
import type { ShipmentWork } from '../store/export-work.js';
import type { OpenStamps, ReadStamps, StampsOf } from './export-stamps.js';
import { createLineRenderer, type Line } from './line-template.js';

/** A line that was rendered: its log index, and whether it lacks a stamp. */
type RenderedLine = { logIndex: number; isStampPending: boolean };

/**
 * Renders the lines of an exported batch, `{"submission": …, "bundle": …}`, and calls `note` for each. Yields whole lines
 * in UTF-8, in chunks that hold until the next is asked for.
 */
export type RenderLines = (
  leased: LeasedExport,
  work: ShipmentWork,
  note: (line: RenderedLine) => void,
) => AsyncIterable<Uint8Array>;

/**
 * Returns whether the lines of an exported batch have certainly more than so many bytes, by what all lines of it share. It
 * may return false of longer lines, and does without a look of those whose mean would be above 16 KiB.
 */
type AreLonger = (leased: LeasedExport, work: ShipmentWork, bytes: number) => Promise<boolean>;

/**
 * Submissions read at once: at first few, then as many as had those bytes in the page before. A row of a page of 1,000
 * takes Postgres 8 µs with its tiles, of one of 200 it took 10. The next are read while these are rendered.
 */
const FIRST_PAGE = 200;
const PAGE = 1_000;
const PAGE_BYTES = 1024 * 1024;
const LONG_LINE_BYTES = 16 * 1024;
const CHUNK_BYTES = 256 * 1024;

/** Creates the renderer. What it reads is at least as new as its call: only tiles, which only grow, are cached for longer. */
export function createExportLines(pool: Pool, logCache: LogCache, openStamps: OpenStamps): RenderLines {
  return async function* (leased, work, note) {
    const log = await logCache.getLog(work.logId);
    const proof = await createBatchReader(pool)(log, work.treeSize);
    const sizes = proof.prepared.checkpoints.map(({ size }) => size);
    const render = createLineRenderer({ proof, projectId: leased.projectId });
    const keys = new Map<number, Uint8Array>();
    const proofTexts = sizes.map(createProofTexts);
    const chunk = createChunk();
    const readStamps = openStamps(log);
    for await (const { rows, readTile, stampsOf } of readPages(pool, { leased, work, sizes, readStamps })) {
      const readRow = createRowReader(rows);
      for (let row = readRow(); row !== undefined; row = readRow()) {
        const dsseKey = keys.get(row.dsseKeyId) ?? (await logCache.getDsseKey(row.dsseKeyId)).spki;
        keys.set(row.dsseKeyId, dsseKey);
        const proofs = proofTexts.map((textOf) => textOf(row.logIndex, readTile));
        const stamps = stampsOf(row.logIndex);
        const line = render({ row, dsseKey, proofs, ...stamps });
        if (!chunk.add(line)) {
          yield chunk.take();
          chunk.grow(line);
          chunk.add(line);
        }
        note({ logIndex: row.logIndex, isStampPending: stamps.isStampPending ?? false });
      }
    }
    yield chunk.take();
  };
}

/** Creates the measure of lines. Counting those of a large batch takes 0.2 µs each, and it stops at those that are enough. */
export function createLineMeasure(pool: Pool, logCache: LogCache): AreLonger {
  return async ({ projectId, schema }, { logId, firstIndex, treeSize }, bytes) => {
    if ((treeSize - firstIndex) * LONG_LINE_BYTES <= bytes) return false;
    const readBatch = createBatchReader(pool);
    const { prepared, texts } = await readBatch(await logCache.getLog(logId), treeSize);
    const shared = [texts.batch, texts.witnesses, ...prepared.checkpoints.map(({ note }) => note)];
    // A UTF-16 code unit takes a byte of UTF-8 at least.
    const enough = Math.floor(bytes / shared.reduce((sum, { length }) => sum + length, 0)) + 1;
    const range = { projectId, logId, firstIndex, endIndex: treeSize, schema };
    return (await countExportedRows(pool, range, enough)) === enough;
  };
}

/** Lines in a buffer that is used again. */
function createChunk() {
  let buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  let end = 0;
  return {
    /** Adds a line. @returns false if there is no room for it */
    add: ({ template, values }: Line) => {
      if (end + maxTemplateBytes(template, values) > buffer.length) return false;
      end = writeTemplate(template, values, buffer, end);
      return true;
    },
    take: () => {
      const taken = buffer.subarray(0, end);
      end = 0;
      return taken;
    },
    /** Makes room for a line in an empty chunk. */
    grow: ({ template, values }: Line) => {
      const bytes = maxTemplateBytes(template, values);
      if (bytes > buffer.length) buffer = Buffer.allocUnsafeSlow(bytes);
    },
  };
}

/** Submissions, see {@link listExportedRows}, the tiles of their proofs, and the time stamps over their signatures. */
type Page = { rows: ExportedPage; readTile: ReadTile; stampsOf: StampsOf };

type PagesOf = {
  leased: LeasedExport;
  work: ShipmentWork;
  sizes: readonly number[];
  readStamps: ReadStamps;
};

/** Reads pages with the tiles of their proofs and the stamps, each while the one before is used. */
async function* readPages(pool: Pool, pages: PagesOf): AsyncIterable<Page> {
  const { leased, work, readStamps } = pages;
  const { projectId, schema } = leased;
  const { logId, treeSize: endIndex } = work;
  const readTiles = createTileReader(pool, { logId: pages.work.logId, sizes: pages.sizes });
  const read = async (firstIndex: number, limit: number) => {
    const range = { projectId, logId, firstIndex, endIndex, schema };
    const rows = await listExportedRows(pool, range, limit);
    const indexes = logIndexesOf(rows);
    const [readTile, stampsOf] = await Promise.all([readTiles(indexes), readStamps(rows, indexes)]);
    return { rows, indexes, readTile, stampsOf, isLast: indexes.length < limit };
  };
  let reading = read(work.firstIndex, FIRST_PAGE);
  for (;;) {
    const { rows, indexes, readTile, stampsOf, isLast } = await reading;
    const last = indexes.at(-1);
    if (last === undefined) return;
    if (!isLast) {
      reading = read(last + 1, nextLimit(indexes.length, rows.length));
      reading.catch(() => {});
    }
    yield { rows, readTile, stampsOf };
    if (isLast) return;
  }
}

function nextLimit(rows: number, bytes: number): number {
  return Math.max(1, Math.min(PAGE, Math.floor((PAGE_BYTES / bytes) * rows)));
}

/**
 * Creates a function that reads the tiles of the proofs of submissions. It keeps those of its last call, with the nodes that
 * were computed from them: 3 µs a row less than without.
 */
export function createTileReader(pool: Pool, { logId, sizes }: { logId: number; sizes: readonly number[] }) {
  let known = new Map<string, Uint8Array>();
  return async (indexes: readonly number[]): Promise<ReadTile> => {
    const oneOfEach = new Map(indexes.map((index) => [Math.floor(index / TILE_WIDTH), index]));
    const places = [...oneOfEach.values()].flatMap((index) =>
      sizes.flatMap((size) => tilesForInclusion(index, size)),
    );
    const wanted = new Map(
      places.map(({ level, index }) => [placeOf(level, index), { logId, level, index }]),
    );
    const kept = [...known].filter(([place]) => wanted.delete(place));
    const found = wanted.size === 0 ? [] : await findTiles(pool, [...wanted.values()]);
    const tiles = new Map([
      ...kept,
      ...found.map(({ level, index, hashes }) => [placeOf(level, index), hashes] as const),
    ]);
    known = tiles;
    return (level, index) => tiles.get(placeOf(level, index));
  };
}

const placeOf = (level: number, index: number) => `${level}/${index}`;
