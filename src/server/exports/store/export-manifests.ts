import { ExportStart } from '../../../../gen/attestation/v1/exports_pb.js';
import type { Sql } from '../../database/connect.js';
import { lockLease, recordExportSuccess } from './export-leases.js';

const MAX_SIZE = Number.MAX_SAFE_INTEGER;

/** An object of a manifest. `sha256` and `revision` are those of its last shipment. */
export type ManifestObject = {
  logId: number;
  origin: string;
  treeSize: number;
  firstIndex: number;
  batchId: string;
  submissions: number;
  bytes: number;
  revision: number;
  sha256: Uint8Array;
};

/** Tree sizes of a log, `[from, to)`: every matching batch between them is shipped. The export starts at `start`. */
export type ManifestRange = { logId: number; origin: string; start: number; from: number; to: number };

/** Lists the objects of a day that were shipped, in the order of their logs. */
export async function listManifestObjects(
  sql: Sql,
  exportId: string,
  day: string,
): Promise<ManifestObject[]> {
  return sql<ManifestObject[]>`
    SELECT s.log_id AS "logId", l.origin, s.tree_size AS "treeSize", b.first_index AS "firstIndex",
      s.batch_id AS "batchId", s.submissions, s.bytes, s.shipped_revision AS revision, s.sha256
    FROM export_shipment s JOIN log l ON l.id = s.log_id
    JOIN batch b ON b.log_id = s.log_id AND b.tree_size = s.tree_size
    WHERE s.export_id = ${exportId} AND s.day = ${day}::date AND s.shipped_revision > 0
    ORDER BY s.log_id, s.tree_size`;
}

/**
 * The range of each log that a day's objects cover: from the last object before the day, or the start of the export, to the
 * day's last object. While earlier batches are being shipped, a day that also has new ones is covered from the first new one.
 */
export async function listManifestRanges(sql: Sql, exportId: string, day: string): Promise<ManifestRange[]> {
  return sql<ManifestRange[]>`
    SELECT DISTINCT ON (k.log_id) k.log_id AS "logId", l.origin,
      CASE WHEN x.start = ${ExportStart.BEGINNING} THEN 0 ELSE k.start_size END AS start,
      coalesce(earlier.size, part.start) AS "from", today.size AS "to"
    FROM export_cursor k JOIN log l ON l.id = k.log_id JOIN export x ON x.id = k.export_id
    CROSS JOIN LATERAL (
      SELECT CASE WHEN x.start = ${ExportStart.BEGINNING} THEN 0 ELSE k.start_size END AS start, ${MAX_SIZE}::bigint AS until
      WHERE k.backfill_size >= k.start_size
      UNION ALL
      SELECT p.start, p.until FROM (VALUES (0, k.start_size), (k.start_size, ${MAX_SIZE}::bigint)) p(start, until)
      WHERE k.backfill_size < k.start_size) part
    CROSS JOIN LATERAL (${lastObject(sql, sql`s.day = ${day}::date`)}) today
    CROSS JOIN LATERAL (${lastObject(sql, sql`s.day < ${day}::date`)}) earlier
    WHERE k.export_id = ${exportId} AND today.size IS NOT NULL ORDER BY k.log_id, part.start DESC`;
}

/** The end of the last shipped batch of some days within a part of a log. */
const lastObject = (sql: Sql, days: ReturnType<Sql>) => sql`
  SELECT max(s.tree_size) AS size FROM export_shipment s
  WHERE s.export_id = k.export_id AND s.log_id = k.log_id AND ${days} AND s.shipped_revision > 0
    AND s.tree_size > part.start AND s.tree_size <= part.until`;

/** Whether a day is over and every object of it is current: no batch sealed on it is unsettled or not shipped. */
export async function isDayComplete(sql: Sql, exportId: string, day: string): Promise<boolean> {
  const end = sql`((${day}::date + 1)::timestamp AT TIME ZONE 'UTC')`;
  const [row] = await sql<{ isComplete: boolean }[]>`
    SELECT clock_timestamp() >= ${end}
      AND NOT EXISTS (SELECT FROM export_shipment s WHERE s.export_id = ${exportId}
                      AND s.wanted_revision > s.shipped_revision AND s.day <= ${day}::date)
      AND NOT EXISTS (
        SELECT FROM export_cursor k CROSS JOIN LATERAL (
          SELECT b.sealed_at FROM batch b WHERE b.log_id = k.log_id AND b.tree_size > k.through_size
          ORDER BY b.tree_size LIMIT 1) next
        WHERE k.export_id = ${exportId} AND next.sealed_at < ${end})
      AND NOT EXISTS (
        SELECT FROM export_cursor k CROSS JOIN LATERAL (
          SELECT b.sealed_at FROM batch b
          WHERE b.log_id = k.log_id AND b.tree_size > k.backfill_size AND b.tree_size <= k.start_size
          ORDER BY b.tree_size LIMIT 1) next
        WHERE k.export_id = ${exportId} AND next.sealed_at < ${end}) AS "isComplete"`;
  return row?.isComplete ?? false;
}

/** A manifest as it was written. */
type WrittenManifest = {
  day: string;
  revision: number;
  bytes: number;
  submissions: number;
  isComplete: boolean;
};

/**
 * Records a written manifest. One that is not complete is due again when its day is over, or after `retryMs` if it is.
 * Returns false if the lease has ended. Runs in the caller's transaction.
 */
export async function recordManifest(
  tx: Sql,
  { exportId, lease }: { exportId: string; lease: number },
  { day, revision, bytes, submissions, isComplete }: WrittenManifest,
  retryMs: number,
): Promise<boolean> {
  if (!(await lockLease(tx, exportId, lease))) return false;
  await recordExportSuccess(tx, exportId);
  await tx`
    UPDATE export_manifest m SET shipped_revision = ${revision}, bytes = ${bytes}, submissions = ${submissions},
      is_complete = ${isComplete}, error = NULL, at = clock_timestamp(),
      wanted_revision = CASE WHEN ${isComplete} THEN greatest(m.wanted_revision, ${revision}) ELSE ${revision + 1} END,
      due_at = CASE WHEN m.wanted_revision > ${revision} THEN m.due_at
        ELSE greatest(((m.day + 1)::timestamp AT TIME ZONE 'UTC') + interval '1 minute',
                      clock_timestamp() + ${retryMs}::bigint * interval '1 millisecond') END
    WHERE m.export_id = ${exportId} AND m.day = ${day}::date`;
  return true;
}
