import type { Sql } from '../database/connect.js';

/** Changes handled in one transaction. */
const MAX_CHANGES = 100;

type Change = {
  id: number;
  logId: number;
  firstIndex: number;
  endIndex: number;
  projectId: string | null;
};

/** Whether changes of evidence or metadata wait to be marked. */
export async function hasExportChanges(sql: Sql): Promise<boolean> {
  const rows = await sql`SELECT FROM export_change LIMIT 1`;
  return rows.length > 0;
}

/**
 * Marks the shipments that waiting changes concern: each gets a new wanted revision, and its export is due. Runs in a
 * transaction, after that of the change: a shipment that is claimed later reads the changed content anyway.
 *
 * @returns whether there may be more
 */
export async function markChanges(tx: Sql): Promise<boolean> {
  const changes = await tx<Change[]>`
    DELETE FROM export_change WHERE id IN (
      SELECT id FROM export_change ORDER BY id LIMIT ${MAX_CHANGES} FOR UPDATE SKIP LOCKED)
    RETURNING id, log_id AS "logId", first_index AS "firstIndex", end_index AS "endIndex", project_id AS "projectId"`;
  const ids = new Set<string>();
  for (const change of changes) {
    const marked = change.projectId === null ? markEvidence(tx, change) : markMetadata(tx, change);
    for (const { id } of await marked) ids.add(id);
  }
  await makeDue(tx, [...ids]);
  return changes.length === MAX_CHANGES;
}

type ExportId = { id: string };
type DueExport = { id: string; projectId: string };

/** Marks the shipments of the batches that the evidence newly covers: those that end in `(firstIndex, endIndex]`. */
async function markEvidence(tx: Sql, { logId, firstIndex, endIndex }: Change): Promise<ExportId[]> {
  return markShipments(
    tx,
    tx`p.log_id = ${logId} AND p.tree_size > ${firstIndex} AND p.tree_size <= ${endIndex}`,
    3,
  );
}

/** Marks new revisions of shipments `p`, and returns their exports. Locks the shipments in order. */
async function markShipments(tx: Sql, which: ReturnType<Sql>, priority: number): Promise<ExportId[]> {
  return tx<ExportId[]>`
    WITH locked AS (
      SELECT p.export_id, p.log_id, p.tree_size FROM export_shipment p
      WHERE ${which} AND EXISTS (SELECT FROM export x WHERE x.id = p.export_id AND x.status <> 3)
      ORDER BY p.export_id, p.log_id, p.tree_size FOR UPDATE OF p),
    marked AS (
      UPDATE export_shipment p SET wanted_revision = p.wanted_revision + 1, priority = least(
        ${priority}::smallint, CASE WHEN p.wanted_revision > p.shipped_revision THEN p.priority END)
      FROM locked k WHERE p.export_id = k.export_id AND p.log_id = k.log_id AND p.tree_size = k.tree_size
      RETURNING p.export_id)
    SELECT DISTINCT export_id AS id FROM marked`;
}

/**
 * Marks the shipments of the batch that holds a changed submission. A correction may name another schema: then the batch
 * has content of that schema from now on, and exports of it that have passed the batch get a shipment.
 */
async function markMetadata(tx: Sql, { logId, firstIndex, projectId }: Change): Promise<ExportId[]> {
  const [batch] = await tx<{ treeSize: number }[]>`
    SELECT tree_size AS "treeSize" FROM batch WHERE log_id = ${logId} AND tree_size > ${firstIndex}
    ORDER BY tree_size LIMIT 1`;
  if (batch === undefined) return [];
  const { treeSize } = batch;
  const marked = await markShipments(
    tx,
    tx`p.log_id = ${logId} AND p.tree_size = ${treeSize} AND EXISTS (
         SELECT FROM export o WHERE o.id = p.export_id AND o.project_id = ${projectId})`,
    1,
  );
  await tx`
    INSERT INTO batch_content (log_id, tree_size, project_id, schema, submissions, first_index, last_index)
    SELECT s.log_id, ${treeSize}, s.project_id, s.schema, 0, s.log_index, s.log_index FROM submission s
    WHERE s.log_id = ${logId} AND s.log_index = ${firstIndex} ON CONFLICT DO NOTHING`;
  const added = await tx<ExportId[]>`
    INSERT INTO export_shipment (export_id, log_id, tree_size, batch_id, day, priority)
    SELECT x.id, b.log_id, b.tree_size, b.id, (b.sealed_at AT TIME ZONE 'UTC')::date, 1
    FROM submission s JOIN batch b ON b.log_id = s.log_id AND b.tree_size = ${treeSize}
    JOIN export x ON x.project_id = s.project_id AND x.schema = s.schema AND x.status <> 3
    JOIN export_cursor k ON k.export_id = x.id AND k.log_id = s.log_id
    WHERE s.log_id = ${logId} AND s.log_index = ${firstIndex}
      AND (b.tree_size <= k.backfill_size OR b.tree_size > k.start_size AND b.tree_size <= k.through_size)
      AND (x.start = 2 OR b.tree_size > k.start_size)
    ON CONFLICT DO NOTHING RETURNING export_id AS id`;
  return [...marked, ...added];
}

/**
 * Marks the shipments of a batch whose status has changed, and makes every export of its projects due.
 *
 * @returns the exports
 */
export async function markTransition(tx: Sql, logId: number, treeSize: number): Promise<DueExport[]> {
  await markShipments(tx, tx`p.log_id = ${logId} AND p.tree_size = ${treeSize}`, 3);
  const rows = await tx<DueExport[]>`
    SELECT DISTINCT x.id, x.project_id AS "projectId" FROM log l
    JOIN batch_content c ON c.log_id = l.id AND c.tree_size = ${treeSize}
    JOIN export x ON x.project_id = c.project_id AND x.environment = l.environment AND x.status <> 3
      AND (x.schema IS NULL OR x.schema = c.schema)
    WHERE l.id = ${logId}`;
  await makeDue(
    tx,
    rows.map(({ id }) => id),
  );
  return rows;
}

/** Makes exports due now, save those that wait after a failure. Locks them in the order of ids. */
async function makeDue(tx: Sql, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await tx`
    WITH locked AS (SELECT id FROM export WHERE id = ANY(${[...ids]}) AND status <> 3 ORDER BY id FOR UPDATE)
    UPDATE export x SET due_at = clock_timestamp() FROM locked
    WHERE x.id = locked.id AND (x.failures = 0 OR x.due_at IS NULL)`;
}
