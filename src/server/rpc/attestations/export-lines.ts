import type { LogCache } from '../../logs/log-cache.js';
import type { Pool } from '../../store/database/connect.js';
import type { LeasedExport } from '../../store/exports/export-leases.js';
import type { ShipmentWork } from '../../store/exports/export-work.js';
import { listRange, type SubmissionRow } from '../../store/submissions/submissions.js';
import { createBatchProofs } from './batch-proofs.js';
import { renderBundle } from './bundles.js';
import { createProofTiles } from './proof-tiles.js';
import { submissionJson, submissionView } from './submission-message.js';

/** Renders the lines of an exported batch, `{"submission": …, "bundle": …}`, and calls `count` for each. */
type RenderLines = (leased: LeasedExport, work: ShipmentWork, count: () => void) => AsyncIterable<string>;

/** Submissions read at once; the next are read while these are rendered. */
const PAGE = 200;

/** Creates the renderer. What it reads is at least as new as its call: only tiles, which only grow, are cached for longer. */
export function createExportLines(pool: Pool, logCache: LogCache): RenderLines {
  const tiles = createProofTiles(pool);
  return async function* (leased, work, count) {
    const proofs = createBatchProofs(pool, () => performance.now());
    const log = await logCache.getLog(work.logId);
    for await (const rows of readPages(pool, leased, work)) {
      for (const row of rows) {
        const proof = await proofs.get(log, work.treeSize);
        const submission = submissionJson(submissionView(row), log.environment);
        const bundle = await renderBundle(logCache, tiles, row, proof);
        count();
        yield `{"submission":${submission},"bundle":${bundle}}\n`;
      }
    }
  };
}

async function* readPages(
  pool: Pool,
  { projectId, schema }: LeasedExport,
  { logId, firstIndex, treeSize }: ShipmentWork,
): AsyncIterable<SubmissionRow[]> {
  const read = (from: number) =>
    listRange(pool, { projectId, logId, firstIndex: from, endIndex: treeSize, schema }, PAGE);
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
