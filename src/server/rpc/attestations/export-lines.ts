import { createInclusionFold } from '../../../proof/log/inclusion-fold.js';
import { type ReadTile, readFrom } from '../../../proof/log/tile.js';
import { TILE_WIDTH } from '../../../proof/log/tile-path.js';
import { tilesForInclusion } from '../../../proof/log/tile-proof.js';
import { maxTemplateBytes, writeTemplate } from '../../json/template.js';
import type { LogCache } from '../../logs/log-cache.js';
import type { Pool } from '../../store/database/connect.js';
import type { LeasedExport } from '../../store/exports/export-leases.js';
import type { ShipmentWork } from '../../store/exports/export-work.js';
import { findTiles } from '../../store/log/tiles.js';
import { type ExportedRow, listExportedRows } from '../../store/submissions/exported-rows.js';
import { createBatchReader, type LoadedBatch } from './batch-proofs.js';
import { createLineRenderer, type Line, proofText } from './line-template.js';

/**
 * Renders the lines of an exported batch, `{"submission": …, "bundle": …}`, and calls `count` for each. Yields whole lines
 * in UTF-8, in chunks that hold until the next is asked for.
 */
type RenderLines = (leased: LeasedExport, work: ShipmentWork, count: () => void) => AsyncIterable<Uint8Array>;

/** Submissions read at once; the next are read while these are rendered. */
const PAGE = 200;
const CHUNK_BYTES = 256 * 1024;

/** Creates the renderer. What it reads is at least as new as its call: only tiles, which only grow, are cached for longer. */
export function createExportLines(pool: Pool, logCache: LogCache): RenderLines {
  return async function* (leased, work, count) {
    const log = await logCache.getLog(work.logId);
    const proof = await createBatchReader(pool, () => performance.now())(log, work.treeSize);
    const render = createLineRenderer({ proof, projectId: leased.projectId });
    const keys = new Map<number, Uint8Array>();
    const prove = createProver(pool, proof);
    const chunk = createChunk();
    for await (const rows of readPages(pool, leased, work)) {
      for (const row of rows) {
        const dsseKey = keys.get(row.dsseKeyId) ?? (await logCache.getDsseKey(row.dsseKeyId)).spki;
        keys.set(row.dsseKeyId, dsseKey);
        if (!prove.isReady(row.logIndex)) await prove.prepare(row.logIndex);
        const line = render({ row, dsseKey, proofs: prove.texts(row.logIndex) });
        if (!chunk.hasRoom(line)) yield chunk.take();
        chunk.add(line);
        count();
      }
    }
    yield chunk.take();
  };
}

/** Computes the texts of leaves' inclusion proofs in each checkpoint, of those of a tile of leaves once it is prepared. */
function createProver(pool: Pool, { log, prepared }: LoadedBatch) {
  const sizes = prepared.checkpoints.map(({ size }) => size);
  const folds = sizes.map((size) => createInclusionFold(size, proofText));
  let tile: number | undefined;
  let readTile: ReadTile = () => undefined;
  const tileOf = (logIndex: number) => Math.floor(logIndex / TILE_WIDTH);
  return {
    isReady: (logIndex: number) => tile === tileOf(logIndex),
    /** Loads what the proofs of all leaves of a tile are computed from. */
    prepare: async (logIndex: number) => {
      const places = sizes.flatMap((size) => tilesForInclusion(logIndex, size));
      readTile = readFrom(
        await findTiles(
          pool,
          places.map((place) => ({ logId: log.id, ...place })),
        ),
      );
      tile = tileOf(logIndex);
    },
    texts: (logIndex: number) => folds.map((fold) => fold(logIndex, readTile) ?? ''),
  };
}

/** Lines in a buffer that is used again. */
function createChunk() {
  let buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  let end = 0;
  return {
    hasRoom: ({ template, values }: Line) =>
      end === 0 || end + maxTemplateBytes(template, values) <= buffer.length,
    take: () => {
      const taken = buffer.subarray(0, end);
      end = 0;
      return taken;
    },
    /** Adds a line, for which there is room unless the chunk is empty: it grows then. */
    add: ({ template, values }: Line) => {
      const bytes = end + maxTemplateBytes(template, values);
      if (bytes > buffer.length) buffer = Buffer.allocUnsafeSlow(bytes);
      end = writeTemplate(template, values, buffer, end);
    },
  };
}

async function* readPages(
  pool: Pool,
  { projectId, schema }: LeasedExport,
  { logId, firstIndex, treeSize }: ShipmentWork,
): AsyncIterable<ExportedRow[]> {
  const read = (from: number) =>
    listExportedRows(pool, { projectId, logId, firstIndex: from, endIndex: treeSize, schema }, PAGE);
  let reading = read(firstIndex);
  for (;;) {
    const rows = await reading;
    const last = rows.at(-1);
    if (last === undefined) return;
    const isLast = rows.length < PAGE;
    if (!isLast) {
      reading = read(last.logIndex + 1);
      reading.catch(() => {});
    }
    yield rows;
    if (isLast) return;
  }
}
