import type { Sql } from '../../database/connect.js';
import { lockLease } from './export-leases.js';
import { archivedEnd, settledSize } from './exports.js';

/** A batch to ship: the log indexes `[firstIndex, treeSize)`. `attempt` counts from 1. */
export type ShipmentWork = {
  kind: 'shipment';
  logId: number;
  treeSize: number;
  firstIndex: number;
  batchId: string;
  /** The UTC day of sealing, `2026-01-02`. */
  day: string;
  revision: number;
};

/** A manifest to write. */
export type ManifestWork = { kind: 'manifest'; day: string; revision: number };

/** Lines of a shipped object to stamp: those from this log index on. */
export type StampWork = Pick<ShipmentWork, 'logId' | 'treeSize'> & { kind: 'stamps'; unstampedFrom: number };

export type ExportWork = ShipmentWork | ManifestWork | StampWork;

/** The members of an export that finding its work needs. */
type ExportScope = { id: string; projectId: string; environment: number; schema: string | null };

type Batch = { logId: number; treeSize: number };

/** The kinds of work that an export does beside changed and failed shipments, one of each in turn. */
const LANES = [findNew, findOld, findRevised, claimManifest, claimStamps] as const;

/**
 * Claims the next work of a leased export, and counts the attempt: shipments whose metadata was changed, then those that
 * failed, then new batches, earlier batches, shipments with later evidence, manifests, and lines without stamps, one of each in
 * turn. A shipment's revision is read before its content, so that a later change makes a later revision. Runs in a
 * transaction.
 *
 * @returns undefined if the lease has ended or nothing is due
 */
export async function claimExportWork(
  tx: Sql,
  scope: ExportScope,
  { lease, turn }: { lease: number; turn: number },
): Promise<ExportWork | undefined> {
  if (!(await lockLease(tx, scope.id, lease))) return undefined;
  await addCursors(tx, scope);
  const pending = await findPending(tx, scope, 2);
  if (pending !== undefined) return claimShipment(tx, scope, pending);
  for (let step = 0; step < LANES.length; step++) {
    const find = LANES[(turn + step) % LANES.length]!;
    const found = await find(tx, scope);
    if (found === undefined) continue;
    return 'kind' in found ? found : claimShipment(tx, scope, found);
  }
  return undefined;
}

/** Logs of later epochs start at their first batch. */
async function addCursors(tx: Sql, { id, environment }: ExportScope): Promise<void> {
  await tx`
    INSERT INTO export_cursor (export_id, log_id, start_size, through_size, backfill_size)
    SELECT ${id}, l.id, 0, ${archivedEnd(tx)}, ${archivedEnd(tx)} FROM log l
    WHERE l.environment = ${environment} AND NOT EXISTS (
      SELECT FROM export_cursor k WHERE k.export_id = ${id} AND k.log_id = l.id)
    ON CONFLICT DO NOTHING`;
}

/** The first pending shipment of at most this priority number, whose batch has settled. */
async function findPending(tx: Sql, { id }: ExportScope, priority: number): Promise<Batch | undefined> {
  const rows = await tx<Batch[]>`
    SELECT p.log_id AS "logId", p.tree_size AS "treeSize" FROM export_shipment p
    JOIN batch b ON b.log_id = p.log_id AND b.tree_size = p.tree_size AND b.status <> 1
    JOIN log l ON l.id = b.log_id AND b.first_index >= l.archived_size
    WHERE p.export_id = ${id} AND p.wanted_revision > p.shipped_revision AND p.priority <= ${priority}
    ORDER BY p.priority, p.log_id, p.tree_size LIMIT 1`;
  return rows[0];
}

function findRevised(tx: Sql, scope: ExportScope): Promise<Batch | undefined> {
  return findPending(tx, scope, 3);
}

/** The next batch after `through_size`. Moves the cursor to it, or past the settled batches that do not match. */
function findNew(tx: Sql, scope: ExportScope): Promise<Batch | undefined> {
  return moveCursor(tx, scope, newBatches(tx));
}

/** The next batch after `backfill_size` and up to `start_size`. Moves the cursor as `findNew` does. */
function findOld(tx: Sql, scope: ExportScope): Promise<Batch | undefined> {
  return moveCursor(tx, scope, oldBatches(tx));
}

/** A part of each log: the column of the cursor `k` that it begins after, and a query of the size that it ends with. */
type Part = { after: Fragment; through: Fragment };

type Fragment = ReturnType<typeof settledSize>;

const newBatches = (sql: Sql): Part => ({ after: sql`through_size`, through: settledSize(sql) });
const oldBatches = (sql: Sql): Part => ({ after: sql`backfill_size`, through: sql`SELECT k.start_size` });

/** Moves the cursor of a part. One statement: a batch that settles between two would be passed. */
async function moveCursor(tx: Sql, scope: ExportScope, { after, through }: Part): Promise<Batch | undefined> {
  const rows = await tx<Batch[]>`
    WITH part AS MATERIALIZED (${findParts(tx, scope, { after, through })}),
    next AS (SELECT log_id, tree_size FROM part WHERE tree_size IS NOT NULL ORDER BY log_id LIMIT 1),
    moved AS (
      UPDATE export_cursor k SET ${after} = coalesce(n.tree_size, p.size) FROM part p LEFT JOIN next n ON true
      WHERE k.export_id = ${scope.id} AND k.log_id = p.log_id AND k.${after} < coalesce(n.tree_size, p.size)
        AND (n.log_id IS NULL OR n.log_id = p.log_id))
    SELECT log_id AS "logId", tree_size AS "treeSize" FROM next`;
  return rows[0];
}

/** The first batch of a part, of the oldest log that has one. */
async function findNext(tx: Sql, scope: ExportScope, part: Part): Promise<Batch | undefined> {
  const rows = await tx<Batch[]>`
    SELECT log_id AS "logId", tree_size AS "treeSize" FROM (${findParts(tx, scope, part)}) part
    WHERE tree_size IS NOT NULL ORDER BY log_id LIMIT 1`;
  return rows[0];
}

/** The first batch with matching submissions of each log's part, null if it has none, and the part's end. */
const findParts = (sql: Sql, { id, projectId, schema }: ExportScope, { after, through }: Part) => sql`
  SELECT k.log_id, s.size, c.tree_size
  FROM export_cursor k JOIN log l ON l.id = k.log_id CROSS JOIN LATERAL (${through}) s(size)
  LEFT JOIN LATERAL (
    SELECT c.tree_size FROM batch_content c
    WHERE c.project_id = ${projectId} AND c.log_id = k.log_id AND c.tree_size > k.${after} AND c.tree_size <= s.size
      ${schema === null ? sql`` : sql`AND c.schema = ${schema}`}
    ORDER BY c.project_id, c.log_id, c.tree_size LIMIT 1) c ON true
  WHERE k.export_id = ${id}`;

async function claimShipment(
  tx: Sql,
  { id }: ExportScope,
  { logId, treeSize }: Batch,
): Promise<ShipmentWork> {
  const rows = await tx<Omit<ShipmentWork, 'kind'>[]>`
    WITH claimed AS (
      INSERT INTO export_shipment AS p (export_id, log_id, tree_size, batch_id, day, attempts)
      SELECT ${id}, b.log_id, b.tree_size, b.id, (b.sealed_at AT TIME ZONE 'UTC')::date, 1
      FROM batch b WHERE b.log_id = ${logId} AND b.tree_size = ${treeSize}
      ON CONFLICT (export_id, log_id, tree_size) DO UPDATE SET attempts = p.attempts + 1, at = clock_timestamp()
      RETURNING p.log_id, p.tree_size, p.batch_id, p.day, p.wanted_revision)
    SELECT c.log_id AS "logId", c.tree_size AS "treeSize", b.first_index AS "firstIndex", c.batch_id AS "batchId",
      to_char(c.day, 'YYYY-MM-DD') AS day, c.wanted_revision AS revision
    FROM claimed c JOIN batch b ON b.log_id = c.log_id AND b.tree_size = c.tree_size`;
  const [row] = rows;
  if (row === undefined) throw new Error(`log ${logId} has no batch that ends at ${treeSize}`);
  return { kind: 'shipment', ...row };
}

async function claimManifest(tx: Sql, { id }: ExportScope): Promise<ManifestWork | undefined> {
  const rows = await tx<Omit<ManifestWork, 'kind'>[]>`
    UPDATE export_manifest m SET attempts = m.attempts + 1, at = clock_timestamp()
    WHERE m.export_id = ${id} AND m.day = (
      SELECT day FROM export_manifest
      WHERE export_id = ${id} AND wanted_revision > shipped_revision AND due_at <= clock_timestamp()
      ORDER BY due_at LIMIT 1)
    RETURNING to_char(m.day, 'YYYY-MM-DD') AS day, m.wanted_revision AS revision`;
  const [row] = rows;
  return row && { kind: 'manifest', ...row };
}

async function claimStamps(tx: Sql, { id }: ExportScope): Promise<StampWork | undefined> {
  const rows = await tx<Omit<StampWork, 'kind'>[]>`
    SELECT p.log_id AS "logId", p.tree_size AS "treeSize", p.unstamped_from AS "unstampedFrom"
    FROM export x JOIN export_shipment p ON p.export_id = x.id AND p.unstamped_from IS NOT NULL
    WHERE x.id = ${id} AND x.stamp_at <= clock_timestamp() ORDER BY p.log_id, p.tree_size LIMIT 1`;
  const [row] = rows;
  return row && { kind: 'stamps', ...row };
}

/**
 * Ends a lease and sets when the export is due: at once if it has work, else with its next manifest or stamp. Does nothing if the
 * lease has ended, as a failure ends it, which sets the time of the next attempt. The lock comes first, so that what others
 * make due meanwhile is either seen here or sets `due_at` after this. Runs in a transaction.
 */
export async function releaseExport(tx: Sql, scope: ExportScope, lease: number): Promise<void> {
  if (!(await lockLease(tx, scope.id, lease))) return;
  const found =
    (await findPending(tx, scope, 3)) ??
    (await findNext(tx, scope, newBatches(tx))) ??
    (await findNext(tx, scope, oldBatches(tx)));
  await tx`
    UPDATE export x SET leased_until = NULL, due_at = ${
      found === undefined
        ? tx`least(
            (SELECT min(m.due_at) FROM export_manifest m
             WHERE m.export_id = x.id AND m.wanted_revision > m.shipped_revision),
            CASE WHEN EXISTS (
              SELECT FROM export_shipment p WHERE p.export_id = x.id AND p.unstamped_from IS NOT NULL) THEN x.stamp_at END)`
        : tx`clock_timestamp()`
    } WHERE x.id = ${scope.id} AND x.leased_until IS NOT NULL`;
}
