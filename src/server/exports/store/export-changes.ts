import type { Sql } from '../../database/connect.js';
import { archivedEnd } from './exports.js';

/** Changes handled in one transaction. */
const MAX_CHANGES = 100;
/** Shipments that a change of evidence marks in one transaction, about. */
const MAX_SHIPMENTS = 1_000;

type Change = {
  id: number;
  logId: number;
  firstIndex: number;
  endIndex: number;
  projectId: string | null;
};

/**
 * Changes `c` of leaves that are sealed. One of another leaf waits: the sealing in progress may have read the metadata
 * before it changed.
 */
const sealed = (sql: Sql) => sql`
  EXISTS (SELECT FROM batch b WHERE b.log_id = c.log_id AND b.tree_size > c.first_index)`;

/** Whether changes of evidence or metadata wait to be marked. */
export async function hasExportChanges(sql: Sql): Promise<boolean> {
  const rows = await sql`SELECT FROM export_change c WHERE ${sealed(sql)} LIMIT 1`;
  return rows.length > 0;
}

/** The exports that became due by marking changes, and whether unmarked changes may be left. */
type Marked = { due: DueExport[]; isMore: boolean };

/**
 * Marks the shipments that waiting changes concern: each gets a new wanted revision, and its export is due. Runs in a
 * transaction, after that of the change: a shipment that is claimed later reads the changed content anyway.
 */
export async function markChanges(tx: Sql): Promise<Marked> {
  const found = await tx<Change[]>`
    DELETE FROM export_change WHERE id IN (
      SELECT c.id FROM export_change c WHERE ${sealed(tx)} ORDER BY c.id LIMIT ${MAX_CHANGES} FOR UPDATE SKIP LOCKED)
    RETURNING id, log_id AS "logId", first_index AS "firstIndex", end_index AS "endIndex", project_id AS "projectId"`;
  const changes: Change[] = [];
  for (const change of found)
    changes.push(change.projectId === null ? await cutEvidence(tx, change) : change);
  const locked = await lockExports(tx, await findConcerned(tx, changes));
  const due = new Set<string>();
  for (const change of changes) {
    const { projectId } = change;
    const ids = locked.filter((one) => projectId === null || one.projectId === projectId).map(({ id }) => id);
    const marked = projectId === null ? markEvidence(tx, ids, change) : markMetadata(tx, ids, change);
    for (const { id } of await marked) due.add(id);
  }
  await makeDue(tx, [...due]);
  return {
    due: locked.filter(({ id }) => due.has(id)),
    isMore: found.length === MAX_CHANGES || changes.some((change, i) => change !== found[i]),
  };
}

/** Cuts evidence that covers very many shipments: the rest is another change, behind those that wait. */
async function cutEvidence(tx: Sql, change: Change): Promise<Change> {
  const { logId, firstIndex, endIndex } = change;
  const [row] = await tx<{ treeSize: number }[]>`
    SELECT tree_size AS "treeSize" FROM export_shipment
    WHERE log_id = ${logId} AND tree_size > ${firstIndex} AND tree_size <= ${endIndex}
    ORDER BY log_id, tree_size OFFSET ${MAX_SHIPMENTS} LIMIT 1`;
  if (row === undefined || row.treeSize === endIndex) return change;
  await tx`
    INSERT INTO export_change (log_id, first_index, end_index) VALUES (${logId}, ${row.treeSize}, ${endIndex})`;
  return { ...change, endIndex: row.treeSize };
}

type ExportId = { id: string };
type DueExport = { id: string; projectId: string };

/**
 * Locks exports, in the order of ids, before their shipments as claims do. A claim in progress ends first: what it made and
 * passed is visible to later statements.
 *
 * @returns those that are not stopped
 */
async function lockExports(tx: Sql, ids: readonly string[]): Promise<DueExport[]> {
  return tx<DueExport[]>`
    SELECT x.id, x.project_id AS "projectId" FROM export x
    WHERE x.id = ANY(${[...ids]}::text[]) AND x.status <> 3
    ORDER BY x.id FOR UPDATE`;
}

/** Finds the exports of changed metadata's projects, and those with shipments that evidence newly covers. */
async function findConcerned(tx: Sql, changes: readonly Change[]): Promise<string[]> {
  const projectIds = changes.flatMap(({ projectId }) => (projectId === null ? [] : [projectId]));
  const found = [
    ...(await tx<ExportId[]>`SELECT id FROM export WHERE project_id = ANY(${projectIds}::text[])`),
  ];
  for (const { logId, firstIndex, endIndex, projectId } of changes) {
    if (projectId !== null) continue;
    const shipped = await tx<ExportId[]>`
      SELECT DISTINCT export_id AS id FROM export_shipment
      WHERE log_id = ${logId} AND tree_size > ${firstIndex} AND tree_size <= ${endIndex}`;
    found.push(...shipped);
  }
  return found.map(({ id }) => id);
}

/** Marks the shipments of the batches that the evidence newly covers: those that end in `(firstIndex, endIndex]`. */
async function markEvidence(
  tx: Sql,
  exportIds: readonly string[],
  { logId, firstIndex, endIndex }: Change,
): Promise<ExportId[]> {
  return markShipments(
    tx,
    exportIds,
    { logId, which: tx`p.tree_size > ${firstIndex} AND p.tree_size <= ${endIndex}` },
    3,
  );
}

/** Marks new revisions of shipments `p` of a log and of locked exports, none of archived rows. Returns the exports that have any. */
async function markShipments(
  tx: Sql,
  exportIds: readonly string[],
  { logId, which }: { logId: number; which: ReturnType<Sql> },
  priority: number,
): Promise<ExportId[]> {
  if (exportIds.length === 0) return [];
  return tx<ExportId[]>`
    WITH marked AS (
      UPDATE export_shipment p SET wanted_revision = p.wanted_revision + 1, priority = least(
        ${priority}::smallint, CASE WHEN p.wanted_revision > p.shipped_revision THEN p.priority END)
      WHERE p.log_id = ${logId} AND ${which} AND p.export_id = ANY(${[...exportIds]}::text[])
        AND p.tree_size > (SELECT ${archivedEnd(tx)} FROM log l WHERE l.id = ${logId})
      RETURNING p.export_id)
    SELECT DISTINCT export_id AS id FROM marked`;
}

/**
 * Marks the shipments of the batch that holds a changed submission, of exports of its project. A correction may name another
 * schema: then the batch has content of that schema from now on. Exports of it that have passed the batch get a shipment, the others find it.
 */
async function markMetadata(
  tx: Sql,
  exportIds: readonly string[],
  { logId, firstIndex }: Change,
): Promise<ExportId[]> {
  const [batch] = await tx<{ treeSize: number }[]>`
    SELECT tree_size AS "treeSize" FROM batch WHERE log_id = ${logId} AND tree_size > ${firstIndex}
    ORDER BY tree_size LIMIT 1`;
  if (batch === undefined) return [];
  const { treeSize } = batch;
  const marked = await markShipments(tx, exportIds, { logId, which: tx`p.tree_size = ${treeSize}` }, 1);
  await tx`
    INSERT INTO batch_content (log_id, tree_size, project_id, schema, submissions, first_index, last_index)
    SELECT s.log_id, ${treeSize}, s.project_id, s.schema, 0, s.log_index, s.log_index FROM named_submission s
    WHERE s.log_id = ${logId} AND s.log_index = ${firstIndex} ON CONFLICT DO NOTHING`;
  const ofSchema = await tx<ExportId[]>`
    WITH added AS (
      INSERT INTO export_shipment (export_id, log_id, tree_size, batch_id, day, priority)
      SELECT x.id, b.log_id, b.tree_size, b.id, (b.sealed_at AT TIME ZONE 'UTC')::date, 1
      FROM named_submission s JOIN batch b ON b.log_id = s.log_id AND b.tree_size = ${treeSize}
      JOIN export x ON x.project_id = s.project_id AND x.schema = s.schema AND x.id = ANY(${[...exportIds]}::text[])
      JOIN export_cursor k ON k.export_id = x.id AND k.log_id = s.log_id
      WHERE s.log_id = ${logId} AND s.log_index = ${firstIndex}
        AND (b.tree_size <= k.backfill_size OR b.tree_size > k.start_size AND b.tree_size <= k.through_size)
        AND (x.start = 2 OR b.tree_size > k.start_size)
      ON CONFLICT DO NOTHING)
    SELECT x.id FROM named_submission s JOIN export x ON x.project_id = s.project_id AND x.schema = s.schema
    WHERE s.log_id = ${logId} AND s.log_index = ${firstIndex} AND x.id = ANY(${[...exportIds]}::text[])`;
  return [...marked, ...ofSchema];
}

/**
 * Marks the shipments of a batch whose status has changed, and makes every export of its projects due.
 *
 * @returns the exports
 */
export async function markTransition(tx: Sql, logId: number, treeSize: number): Promise<DueExport[]> {
  const found = await tx<ExportId[]>`
    SELECT x.id FROM log l
    JOIN batch_content c ON c.log_id = l.id AND c.tree_size = ${treeSize}
    JOIN export x ON x.project_id = c.project_id AND x.environment = l.environment
      AND (x.schema IS NULL OR x.schema = c.schema)
    WHERE l.id = ${logId}`;
  const exports = await lockExports(
    tx,
    found.map(({ id }) => id),
  );
  const ids = exports.map(({ id }) => id);
  await markShipments(tx, ids, { logId, which: tx`p.tree_size = ${treeSize}` }, 3);
  await makeDue(tx, ids);
  return exports;
}

/** Makes locked exports due now, save those that wait after a failure. */
async function makeDue(tx: Sql, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await tx`
    UPDATE export x SET due_at = clock_timestamp()
    WHERE x.id = ANY(${[...ids]}::text[]) AND (x.failures = 0 OR x.due_at IS NULL)`;
}
