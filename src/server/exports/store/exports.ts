import type { JsonObject } from '@bufbuild/protobuf';
import { ExportStart, ExportStatus } from '../../../../gen/attestation/v1/exports_pb.js';
import type { Sql } from '../../database/connect.js';

/**
 * An export. Enumerations are proto numbers: Environment, ExportCompression, ExportStart, ExportStatus. `destination` is
 * the proto's JSON without secrets; `secrets` is encrypted, and empty once the export is stopped.
 */
export type ExportRow = {
  id: string;
  number: number;
  projectId: string;
  environment: number;
  destination: JsonObject;
  secrets: Uint8Array;
  schema: string | null;
  compression: number;
  start: number;
  status: number;
  createdAt: Date;
  stoppedAt: Date | null;
  failures: number;
  failingSince: Date | null;
  lastError: string | null;
  dueAt: Date | null;
};

/** The owner of exports: a project in one environment. */
type ExportOwner = { projectId: string; environment: number };

const { STOPPED } = ExportStatus;

/** The columns of {@link ExportRow}, for queries of this folder with exports under the alias `x`. */
export const exportColumns = (sql: Sql) => sql`
  x.id, x.number, x.project_id AS "projectId", x.environment, x.destination, x.secrets, x.schema, x.compression, x.start,
  x.status, x.created_at AS "createdAt", x.stopped_at AS "stoppedAt", x.failures, x.failing_since AS "failingSince",
  x.last_error AS "lastError", x.due_at AS "dueAt"`;

type NewExport = ExportOwner &
  Pick<ExportRow, 'id' | 'destination' | 'secrets' | 'schema' | 'compression' | 'start'>;

/**
 * Inserts an export that is due at once, unless its owner has `max` that are not stopped. It starts behind the batches that
 * have settled, or at the beginning. Runs in the caller's transaction.
 *
 * @returns whether it was inserted
 */
export async function insertExport(tx: Sql, made: NewExport, max: number): Promise<boolean> {
  const { id, projectId, environment, destination, secrets, schema, compression, start } = made;
  await tx`SELECT FROM project WHERE id = ${projectId} FOR NO KEY UPDATE`;
  const inserted = await tx`
    INSERT INTO export (id, project_id, environment, destination, secrets, schema, compression, start, due_at)
    SELECT ${id}, ${projectId}, ${environment}, ${tx.json(destination)}, ${secrets}, ${schema}, ${compression}, ${start},
           clock_timestamp()
    WHERE (${countOf(tx, { projectId, environment })}) < ${max}`;
  if (inserted.count === 0) return false;
  await tx`
    INSERT INTO export_cursor (export_id, log_id, start_size, through_size, backfill_size)
    SELECT ${id}, l.id, s.size, s.size, CASE WHEN ${start === ExportStart.BEGINNING} THEN ${archivedEnd(tx)} ELSE s.size END
    FROM log l CROSS JOIN LATERAL (${settledSize(tx)}) s(size) WHERE l.environment = ${environment}`;
  return true;
}

/** Whether an owner has fewer than `max` exports that are not stopped. */
export async function mayAddExport(
  sql: Sql,
  { projectId, environment }: ExportOwner,
  max: number,
): Promise<boolean> {
  const [row] = await sql<
    { count: number }[]
  >`SELECT (${countOf(sql, { projectId, environment })})::int AS count`;
  return row !== undefined && row.count < max;
}

const countOf = (sql: Sql, { projectId, environment }: ExportOwner) => sql`
  SELECT count(*) FROM export
  WHERE project_id = ${projectId} AND environment = ${environment} AND status <> ${STOPPED}`;

/** The end of the last batch of a log `l` of which rows are archived: there is nothing to ship up to there. */
export const archivedEnd = (sql: Sql) => sql`
  coalesce((SELECT b.tree_size FROM batch b
            WHERE b.log_id = l.id AND b.tree_size >= l.archived_size AND l.archived_size > 0
            ORDER BY b.tree_size LIMIT 1), 0)`;

/** The tree size up to which every batch of a log `l` has settled. */
export const settledSize = (sql: Sql) => sql`
  SELECT coalesce((SELECT b.first_index FROM batch b WHERE b.log_id = l.id AND b.status = 1 ORDER BY b.tree_size LIMIT 1),
                  (SELECT max(b.tree_size) FROM batch b WHERE b.log_id = l.id), 0)`;

/** Finds the owner's export by id. Locks it if `isLocked`. */
export async function findExport(
  sql: Sql,
  { projectId, environment }: ExportOwner,
  id: string,
  { isLocked = false } = {},
): Promise<ExportRow | undefined> {
  const rows = await sql<ExportRow[]>`
    SELECT ${exportColumns(sql)} FROM export x
    WHERE x.id = ${id} AND x.project_id = ${projectId} AND x.environment = ${environment}
    ${isLocked ? sql`FOR UPDATE` : sql``}`;
  return rows[0];
}

/** A batch of a log. */
type BatchEnd = { logId: number; treeSize: number };

/** Lists the owner's exports with numbers below `before`, newest first; of a batch those that have an object for it. */
export async function listExports(
  sql: Sql,
  { projectId, environment }: ExportOwner,
  { batch, before, limit }: { batch?: BatchEnd | undefined; before: number | undefined; limit: number },
): Promise<ExportRow[]> {
  return sql<ExportRow[]>`
    SELECT ${exportColumns(sql)} FROM export x
    WHERE x.project_id = ${projectId} AND x.environment = ${environment}
      ${batch === undefined ? sql`` : sql`AND ${hasObject(sql, batch)}`}
      ${before === undefined ? sql`` : sql`AND x.number < ${before}`}
    ORDER BY x.number DESC LIMIT ${limit}`;
}

const hasObject = (sql: Sql, { logId, treeSize }: BatchEnd) => sql`EXISTS (
  SELECT FROM export_shipment p WHERE p.export_id = x.id AND p.log_id = ${logId} AND p.tree_size = ${treeSize})`;

/**
 * Lists exports of all owners with numbers below `before`, newest first: those of a status, or with 0 all that are not
 * stopped. `onlyFailed` leaves those whose last attempt failed.
 */
export async function listAllExports(
  sql: Sql,
  { status, onlyFailed }: { status: number; onlyFailed: boolean },
  { before, limit }: { before: number | undefined; limit: number },
): Promise<ExportRow[]> {
  return sql<ExportRow[]>`
    SELECT ${exportColumns(sql)} FROM export x
    WHERE ${status === 0 ? sql`x.status <> ${STOPPED}` : sql`x.status = ${status}`}
      ${onlyFailed ? sql`AND x.failures > 0` : sql``}
      ${before === undefined ? sql`` : sql`AND x.number < ${before}`}
    ORDER BY x.number DESC LIMIT ${limit}`;
}

/** Stops an export for good and erases its secrets. Ends the lease. @returns whether it was not stopped before */
export async function stopExport(sql: Sql, id: string): Promise<boolean> {
  const { count } = await sql`
    UPDATE export SET status = ${STOPPED}, stopped_at = clock_timestamp(), secrets = '', due_at = NULL,
      failing_since = NULL, failures = 0, last_error = NULL, lease = lease + 1, leased_until = NULL
    WHERE id = ${id} AND status <> ${STOPPED}`;
  return count === 1;
}
