import { ExportStatus } from '../../../../gen/attestation/v1/exports_pb.js';
import type { Sql } from '../../database/connect.js';
import { type ExportRow, exportColumns } from './exports.js';

/** An export that this worker has leased. */
export type LeasedExport = ExportRow & { lease: number };

const { ACTIVE, FAILING, STOPPED } = ExportStatus;

const due = (sql: Sql) => sql`
  x.due_at <= clock_timestamp() AND (x.leased_until IS NULL OR x.leased_until < clock_timestamp())`;

/** Leases an export that is due and not leased. Returns undefined if it is neither. */
export async function leaseExport(sql: Sql, id: string, leaseMs: number): Promise<LeasedExport | undefined> {
  const rows = await sql<LeasedExport[]>`
    UPDATE export x SET lease = x.lease + 1, leased_until = clock_timestamp() + ${leaseMs}::bigint * interval '1 millisecond'
    WHERE x.id = ${id} AND x.status <> ${STOPPED} AND ${due(sql)}
    RETURNING ${exportColumns(sql)}, x.lease`;
  return rows[0];
}

/** Whether an export is due and not leased. */
export async function isExportDue(sql: Sql, id: string): Promise<boolean> {
  const rows = await sql`SELECT FROM export x WHERE x.id = ${id} AND ${due(sql)}`;
  return rows.length === 1;
}

/** Finds exports that are due and not leased, the longest due first. */
export async function findDueExports(sql: Sql, limit: number): Promise<{ id: string; projectId: string }[]> {
  return sql<{ id: string; projectId: string }[]>`
    SELECT x.id, x.project_id AS "projectId" FROM export x WHERE ${due(sql)} ORDER BY x.due_at LIMIT ${limit}`;
}

/**
 * Renews those of these leases that have not ended. Skips locked rows, so that two callers cannot deadlock.
 *
 * @returns the exports whose leases have ended
 */
export async function renewExportLeases(
  sql: Sql,
  leases: ReadonlyMap<string, { lease: number }>,
  leaseMs: number,
): Promise<string[]> {
  const ids = [...leases.keys()];
  const numbers = [...leases.values()].map(({ lease }) => lease);
  await sql`
    UPDATE export x SET leased_until = clock_timestamp() + ${leaseMs}::bigint * interval '1 millisecond'
    FROM (SELECT h.id FROM export h
          JOIN unnest(${ids}::text[], ${numbers}::bigint[]) AS held(id, lease)
            ON held.id = h.id AND held.lease = h.lease
          WHERE h.leased_until IS NOT NULL FOR UPDATE OF h SKIP LOCKED) held
    WHERE x.id = held.id`;
  const lost = await sql<{ id: string }[]>`
    SELECT held.id FROM unnest(${ids}::text[], ${numbers}::bigint[]) AS held(id, lease)
    LEFT JOIN export x ON x.id = held.id AND x.lease = held.lease AND x.status <> ${STOPPED} WHERE x.id IS NULL`;
  return lost.map(({ id }) => id);
}

/** Whether a lease has not been followed by another and its export is not stopped. */
export async function holdsLease(sql: Sql, id: string, lease: number): Promise<boolean> {
  const rows = await sql`SELECT FROM export WHERE id = ${id} AND lease = ${lease} AND status <> ${STOPPED}`;
  return rows.length === 1;
}

/** Locks a leased export until the transaction ends. Returns false if the lease has ended. */
export async function lockLease(tx: Sql, id: string, lease: number): Promise<boolean> {
  const rows = await tx`
    SELECT FROM export WHERE id = ${id} AND lease = ${lease} AND status <> ${STOPPED} FOR UPDATE`;
  return rows.length === 1;
}

/** Records a success under a lease, in the transaction of its shipment: failures are over. */
export async function recordExportSuccess(tx: Sql, id: string): Promise<void> {
  await tx`
    UPDATE export SET failures = 0, failing_since = NULL, last_error = NULL, status = ${ACTIVE}
    WHERE id = ${id} AND (failures > 0 OR last_error IS NOT NULL OR status <> ${ACTIVE})`;
}

/** A failed attempt under a lease. */
type ExportFailure = {
  id: string;
  lease: number;
  error: string;
  retryAfterMs: number;
  failingAfterMs: number;
};

/** Ends a lease without counting a failure. Returns false if it has ended. Runs in the caller's transaction. */
export async function postponeExport(
  tx: Sql,
  { id, lease, error, retryAfterMs }: Omit<ExportFailure, 'failingAfterMs'>,
): Promise<boolean> {
  if (!(await lockLease(tx, id, lease))) return false;
  await tx`
    UPDATE export SET last_error = ${error}, lease = lease + 1, leased_until = NULL,
      due_at = clock_timestamp() + ${retryAfterMs}::bigint * interval '1 millisecond'
    WHERE id = ${id}`;
  return true;
}

/** Makes an export due now that waits after a failure. */
export async function retryExportNow(sql: Sql, id: string): Promise<void> {
  await sql`UPDATE export SET due_at = clock_timestamp() WHERE id = ${id} AND failures > 0 AND status <> ${STOPPED}`;
}

/** A failing export: since when, and whether it has become failing with this attempt. */
type FailingExport = {
  projectId: string;
  environment: number;
  since: Date;
  hasBecomeFailing: boolean;
};

/**
 * Records a failed attempt and ends the lease. The export is failing once every attempt of `failingAfterMs` has failed.
 * Returns undefined if the lease has ended. Runs in the caller's transaction.
 */
export async function recordExportFailure(
  tx: Sql,
  failure: ExportFailure,
): Promise<FailingExport | undefined> {
  const { id, lease, error, retryAfterMs, failingAfterMs } = failure;
  if (!(await lockLease(tx, id, lease))) return undefined;
  const rows = await tx<FailingExport[]>`
    WITH was AS (SELECT id, status FROM export WHERE id = ${id})
    UPDATE export x SET failures = x.failures + 1, last_error = ${error}, lease = x.lease + 1, leased_until = NULL,
      failing_since = coalesce(x.failing_since, clock_timestamp()),
      due_at = clock_timestamp() + ${retryAfterMs}::bigint * interval '1 millisecond',
      status = CASE WHEN clock_timestamp() - x.failing_since >= ${failingAfterMs}::bigint * interval '1 millisecond'
        THEN ${FAILING} ELSE x.status END
    FROM was WHERE x.id = was.id
    RETURNING x.project_id AS "projectId", x.environment, x.failing_since AS since,
      x.status = ${FAILING} AND was.status <> ${FAILING} AS "hasBecomeFailing"`;
  return rows[0];
}
