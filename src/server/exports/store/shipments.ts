import type { Sql } from '../../database/connect.js';
import { lockLease, recordExportSuccess } from './export-leases.js';
import type { ExportWork, ManifestWork, ShipmentWork, StampWork } from './export-work.js';

/** An object as it was written, and the log index of its first line that lacks a stamp; null if none does. */
type WrittenObject = { bytes: number; submissions: number; sha256: Uint8Array; unstampedFrom: number | null };

/** The writer of a shipment: an export and its lease. */
type Writer = { exportId: string; lease: number };

/** The time after a shipment until its day's manifest is written: at least this, and 1 s for each 100,000 bytes of it. */
type ManifestPacing = { manifestDelayMs: number };

/**
 * Records a written object and makes its day's manifest due. Returns false if the lease has ended: then the next holder
 * finds the object where it is. Runs in the caller's transaction.
 */
export async function recordShipment(
  tx: Sql,
  { exportId, lease }: Writer,
  { logId, treeSize, day, revision }: ShipmentWork,
  { bytes, submissions, sha256, unstampedFrom }: WrittenObject,
  { manifestDelayMs }: ManifestPacing,
): Promise<boolean> {
  if (!(await lockLease(tx, exportId, lease))) return false;
  await recordExportSuccess(tx, exportId);
  await tx`
    UPDATE export_shipment SET shipped_revision = ${revision},
      priority = CASE WHEN wanted_revision > ${revision} AND priority = 1 THEN 1 ELSE 3 END, bytes = ${bytes}, submissions = ${submissions},
      sha256 = ${sha256}, unstamped_from = ${unstampedFrom}, error = NULL, at = clock_timestamp()
    WHERE export_id = ${exportId} AND log_id = ${logId} AND tree_size = ${treeSize}`;
  const delay = tx`${manifestDelayMs}::bigint * interval '1 millisecond'`;
  await tx`
    INSERT INTO export_manifest AS m (export_id, day, due_at)
    VALUES (${exportId}, ${day}::date, clock_timestamp() + ${delay})
    ON CONFLICT (export_id, day) DO UPDATE SET
      wanted_revision = m.shipped_revision + 1,
      due_at = least(CASE WHEN m.wanted_revision > m.shipped_revision THEN m.due_at END,
                     clock_timestamp() + greatest(${delay}, m.bytes * interval '10 microseconds'))`;
  return true;
}

/**
 * Records the stamps of shipped lines: `unstampedFrom` is the log index of the first that still lacks one. If it is null, the
 * object is to be written again. Returns false if the lease has ended. Runs in the caller's transaction.
 *
 * @param retryAfterMs until the export's next lines are stamped
 */
export async function recordStamps(
  tx: Sql,
  { exportId, lease }: Writer,
  { logId, treeSize }: StampWork,
  { unstampedFrom, retryAfterMs }: { unstampedFrom: number | null; retryAfterMs: number },
): Promise<boolean> {
  if (!(await lockLease(tx, exportId, lease))) return false;
  await tx`
    UPDATE export SET stamp_at = clock_timestamp() + ${retryAfterMs}::bigint * interval '1 millisecond'
    WHERE id = ${exportId}`;
  await tx`
    UPDATE export_shipment SET unstamped_from = ${unstampedFrom},
      wanted_revision = wanted_revision + ${unstampedFrom === null ? 1 : 0}
    WHERE export_id = ${exportId} AND log_id = ${logId} AND tree_size = ${treeSize}`;
  return true;
}

/** Records that the destination holds an object of this revision, or a later one: the next attempt writes a later revision. */
export async function recordSuperseded(
  tx: Sql,
  { exportId, lease }: Writer,
  work: ShipmentWork | ManifestWork,
  revision: number,
): Promise<boolean> {
  if (!(await lockLease(tx, exportId, lease))) return false;
  if (work.kind === 'manifest') {
    await tx`
      UPDATE export_manifest SET shipped_revision = ${revision}, wanted_revision = ${revision + 1}
      WHERE export_id = ${exportId} AND day = ${work.day}::date`;
  } else {
    await tx`
      UPDATE export_shipment SET wanted_revision = greatest(wanted_revision, ${revision + 1})
      WHERE export_id = ${exportId} AND log_id = ${work.logId} AND tree_size = ${work.treeSize}`;
  }
  return true;
}

/** Records why an attempt failed. Runs in the transaction that records the export's failure. */
export async function recordShipmentError(
  tx: Sql,
  exportId: string,
  work: ExportWork,
  error: string,
): Promise<void> {
  if (work.kind === 'manifest') {
    await tx`
      UPDATE export_manifest SET error = ${error}, at = clock_timestamp()
      WHERE export_id = ${exportId} AND day = ${work.day}::date`;
  } else if (work.kind === 'shipment') {
    await tx`
      UPDATE export_shipment SET error = ${error}, at = clock_timestamp()
      WHERE export_id = ${exportId} AND log_id = ${work.logId} AND tree_size = ${work.treeSize}`;
  }
}

/** A delivery of an object. `batchId` is null for a manifest. */
export type DeliveredObject = {
  batchId: string | null;
  day: string;
  revision: number;
  bytes: number;
  submissions: number;
  attempts: number;
  isCurrent: boolean;
  at: Date;
  error: string | null;
};

const shipmentColumns = (sql: Sql) => sql`
  batch_id AS "batchId", to_char(day, 'YYYY-MM-DD') AS day,
  CASE WHEN shipped_revision = 0 THEN wanted_revision ELSE shipped_revision END AS revision, bytes, submissions,
  attempts, wanted_revision = shipped_revision AS "isCurrent", at, error`;

/** Lists the deliveries of a batch's object by these exports. */
export async function listBatchObjects(
  sql: Sql,
  exportIds: readonly string[],
  { logId, treeSize }: { logId: number; treeSize: number },
): Promise<(DeliveredObject & { exportId: string })[]> {
  return sql<(DeliveredObject & { exportId: string })[]>`
    SELECT export_id AS "exportId", ${shipmentColumns(sql)} FROM export_shipment
    WHERE export_id = ANY(${[...exportIds]}) AND log_id = ${logId} AND tree_size = ${treeSize}`;
}

/** Lists the deliveries of an export that were attempted last, the last first. */
export async function listDeliveredObjects(
  sql: Sql,
  exportId: string,
  limit: number,
): Promise<DeliveredObject[]> {
  return sql<DeliveredObject[]>`
    SELECT * FROM (
      (SELECT ${shipmentColumns(sql)}
       FROM export_shipment WHERE export_id = ${exportId} ORDER BY at DESC LIMIT ${limit})
      UNION ALL
      (SELECT NULL, to_char(day, 'YYYY-MM-DD'), CASE WHEN shipped_revision = 0 THEN wanted_revision ELSE shipped_revision END,
         bytes, submissions, attempts,
         shipped_revision > 0 AND (wanted_revision = shipped_revision OR due_at > clock_timestamp()), at, error
       FROM export_manifest WHERE export_id = ${exportId} AND attempts > 0 ORDER BY at DESC LIMIT ${limit})) d
    ORDER BY at DESC LIMIT ${limit}`;
}
