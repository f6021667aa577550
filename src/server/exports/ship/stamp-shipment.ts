import { listExportedRows, logIndexesOf } from '../../attestations/submissions/exported-rows.js';
import type { LeasedExport } from '../store/export-leases.js';
import type { StampWork } from '../store/export-work.js';
import { recordStamps } from '../store/shipments.js';
import type { Exports } from './export-stage.js';

/** Lines that are read at once. */
const PAGE = 200;
/** Until the next lines are stamped: after some were, the rest that export-stamps.ts gives other objects; after none, longer. */
const REST_MS = 1_000;
const LONG_REST_MS = 30_000;

/**
 * Stamps the signatures of lines that were shipped without stamps, a page at a time. After the last page the object is
 * written again, once.
 *
 * @returns false if the lease has ended
 */
export async function stampShipment(
  { pool, openStamps }: Pick<Exports, 'pool' | 'openStamps'>,
  { id: exportId, lease, projectId, environment, schema }: LeasedExport,
  work: StampWork,
): Promise<boolean> {
  const { logId, unstampedFrom: firstIndex, treeSize: endIndex } = work;
  const rows = await listExportedRows(pool, { projectId, logId, firstIndex, endIndex, schema }, PAGE);
  const indexes = logIndexesOf(rows);
  const stampsOf = await openStamps({ id: logId, environment })(rows, indexes);
  const pending = indexes.find((index) => stampsOf(index).isStampPending);
  const next = pending ?? (indexes.length < PAGE ? null : indexes.at(-1)! + 1);
  const retryAfterMs = pending === undefined ? 0 : pending === indexes[0] ? LONG_REST_MS : REST_MS;
  return pool.begin((tx) =>
    recordStamps(tx, { exportId, lease }, work, { unstampedFrom: next, retryAfterMs }),
  );
}
