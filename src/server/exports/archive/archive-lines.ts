/** The lines of an archived batch: those of exports, of all projects, with what puts their rows back. */
import { createBatchReader } from '../../attestations/bundles/batch-proofs.js';
import { createProofTexts } from '../../attestations/bundles/bundle-template.js';
import { listStamps, parseStamps } from '../../attestations/stamps/stored-stamps.js';
import { createRowReader, logIndexesOf } from '../../attestations/submissions/exported-rows.js';
import type { Pool } from '../../database/connect.js';
import { fillTemplate } from '../../json/template.js';
import type { LogCache } from '../../log/log-cache.js';
import type { Log } from '../../log/store/logs.js';
import { createTileReader } from '../ship/export-lines.js';
import { createLineRenderer } from '../ship/line-template.js';
import { type ArchivableBatch, listArchivedRows, readBatchRecord } from './archived-rows.js';

type RenderedBatch = Pick<ArchivableBatch, 'firstIndex' | 'treeSize'> & { from?: number };

/** Submissions read at once. */
const PAGE = 500;
/** What ends a line of an export. */
const END = '}\n'.length;

/**
 * Renders the lines of a batch in chunks of whole lines: `{"submission": …, "bundle": …, "row": …}`, the first with the
 * batch's own record as `batch`. Those from leaf `from` on, if earlier ones are not rows any more. The same rows give the same
 * bytes. `onLeaves` gets numbers of lines.
 */
export async function* renderArchive(
  { pool, logCache }: { pool: Pool; logCache: LogCache },
  log: Log,
  { firstIndex, treeSize, from = firstIndex }: RenderedBatch,
  onLeaves: (leaves: number) => void,
): AsyncGenerator<Uint8Array> {
  const proof = await createBatchReader(pool)(log, treeSize);
  const sizes = proof.prepared.checkpoints.map(({ size }) => size);
  const proofTexts = sizes.map(createProofTexts);
  const readTiles = createTileReader(pool, { logId: log.id, sizes });
  const renderers = new Map<string, ReturnType<typeof createLineRenderer>>();
  const rendererOf = (projectId: string) => {
    const render = renderers.get(projectId) ?? createLineRenderer({ proof, projectId });
    renderers.set(projectId, render);
    return render;
  };
  let record = from === firstIndex ? `,"batch":${await readBatchRecord(pool, log.id, treeSize)}` : '';
  for (let first = from; first < treeSize; first += PAGE) {
    const end = Math.min(first + PAGE, treeSize);
    const { page, projects, rows } = await listArchivedRows(pool, log.id, first, end);
    const indexes = logIndexesOf(page);
    const [readTile, stamps] = await Promise.all([readTiles(indexes), listStamps(pool, log.id, indexes)]);
    const readRow = createRowReader(page);
    const chunks: Uint8Array[] = [];
    for (let n = 0, row = readRow(); row !== undefined; row = readRow(), n++) {
      const { spki: dsseKey } = await logCache.getDsseKey(row.dsseKeyId);
      const { template, values } = rendererOf(projects[n] ?? '')({
        row,
        dsseKey,
        proofs: proofTexts.map((textOf) => textOf(row?.logIndex ?? 0, readTile)),
        stamps: parseStamps(stamps.get(row.logIndex) ?? '').map(({ response }) => response),
      });
      const line = fillTemplate(template, values);
      chunks.push(line.subarray(0, line.length - END), Buffer.from(`${record},"row":${rows[n]}}\n`));
      record = '';
    }
    onLeaves(end - first);
    yield Buffer.concat(chunks);
  }
}
