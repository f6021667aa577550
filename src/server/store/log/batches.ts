import type { Sql } from '../database/connect.js';
import { logsBelow, mostRows } from '../submissions/list-pages.js';

/** A batch as stored. `status` is a proto BatchStatus number. Not published while `registeredAt` is null. */
export type BatchRow = {
  logId: number;
  treeSize: number;
  id: string;
  firstIndex: number;
  rootHash: Uint8Array;
  note: string;
  policyVersion: number;
  sealedAt: Date;
  deadlineAt: Date;
  registeredAt: Date | null;
  status: number;
  witnessedAt: Date | null;
};

/** The columns of {@link BatchRow}, for queries of this folder that join batches under the alias `b`. */
export const batchColumns = (sql: Sql) => sql`
  b.log_id AS "logId", b.tree_size AS "treeSize", b.id, b.first_index AS "firstIndex", b.root_hash AS "rootHash",
  b.note, b.policy_version AS "policyVersion", b.sealed_at AS "sealedAt", b.deadline_at AS "deadlineAt",
  b.registered_at AS "registeredAt", b.status, b.witnessed_at AS "witnessedAt"`;

/** Finds the newest batch of a log, published or not. */
export async function findNewestBatch(sql: Sql, logId: number): Promise<BatchRow | undefined> {
  const rows = await sql<BatchRow[]>`
    SELECT ${batchColumns(sql)} FROM batch b WHERE b.log_id = ${logId} ORDER BY b.tree_size DESC LIMIT 1`;
  return rows[0];
}

/** Finds the newest published batch of a log: witnesses are asked to cosign its checkpoint. */
export async function findNewestPublishedBatch(sql: Sql, logId: number): Promise<BatchRow | undefined> {
  const rows = await sql<BatchRow[]>`
    SELECT ${batchColumns(sql)} FROM batch b WHERE b.log_id = ${logId} AND b.registered_at IS NOT NULL
    ORDER BY b.tree_size DESC LIMIT 1`;
  return rows[0];
}

/** Finds the batches that end at these tree sizes, published or not, in no order. */
export async function findBatchesBySize(
  sql: Sql,
  ends: readonly { logId: number; treeSize: number }[],
): Promise<BatchRow[]> {
  return sql<BatchRow[]>`
    SELECT ${batchColumns(sql)}
    FROM unnest(${ends.map(({ logId }) => logId)}::integer[], ${ends.map(({ treeSize }) => treeSize)}::bigint[])
      AS p(log_id, tree_size)
    JOIN batch b ON b.log_id = p.log_id AND b.tree_size = p.tree_size`;
}

/** Inserts a sealed batch and the number of its submissions per project and schema. */
export async function insertBatch(
  sql: Sql,
  batch: Omit<BatchRow, 'sealedAt' | 'deadlineAt' | 'registeredAt' | 'status' | 'witnessedAt'> & {
    deadlineMs: number;
  },
): Promise<void> {
  await sql`
    INSERT INTO batch (log_id, tree_size, id, first_index, root_hash, note, policy_version, sealed_at, deadline_at)
    VALUES (${batch.logId}, ${batch.treeSize}, ${batch.id}, ${batch.firstIndex}, ${batch.rootHash}, ${batch.note},
            ${batch.policyVersion}, clock_timestamp(),
            clock_timestamp() + ${batch.deadlineMs}::bigint * interval '1 millisecond')`;
  await sql`
    INSERT INTO batch_content (log_id, tree_size, project_id, schema, submissions, first_index, last_index)
    SELECT ${batch.logId}, ${batch.treeSize}, project_id, schema, count(*), min(log_index), max(log_index)
    FROM submission
    WHERE log_id = ${batch.logId} AND log_index >= ${batch.firstIndex} AND log_index < ${batch.treeSize}
    GROUP BY project_id, schema`;
}

/**
 * Marks every batch of the log up to this one as registered, and so published. Marks none if this database lacks the
 * batch itself, by size and root.
 *
 * @returns whether any had not been marked
 */
export async function markRegistered(
  sql: Sql,
  { logId, treeSize, rootHash }: Pick<BatchRow, 'logId' | 'treeSize' | 'rootHash'>,
): Promise<boolean> {
  const { count } = await sql`
    UPDATE batch SET registered_at = clock_timestamp()
    WHERE log_id = ${logId} AND tree_size <= ${treeSize} AND registered_at IS NULL AND EXISTS (
      SELECT FROM batch b WHERE b.log_id = ${logId} AND b.tree_size = ${treeSize} AND b.root_hash = ${rootHash})`;
  return count > 0;
}

/** Finds a published batch with submissions of the project, by id. */
export async function findProjectBatch(
  sql: Sql,
  projectId: string,
  environment: number,
  id: string,
): Promise<BatchRow | undefined> {
  const rows = await sql<BatchRow[]>`
    SELECT ${batchColumns(sql)} FROM batch b JOIN log l ON l.id = b.log_id AND l.environment = ${environment}
    WHERE b.id = ${id} AND b.registered_at IS NOT NULL AND EXISTS (
      SELECT FROM batch_content c
      WHERE c.project_id = ${projectId} AND c.log_id = b.log_id AND c.tree_size = b.tree_size)`;
  return rows[0];
}

/** The end of a page of batches. */
type BatchPosition = { logId: number; treeSize: number };

/** A query of a project's batches; `status` is a proto BatchStatus number. */
type BatchQuery = {
  projectId: string;
  logIds: readonly number[];
  status: number | undefined;
  before: BatchPosition | undefined;
  limit: number;
};

/**
 * Lists a project's published batches, newest first. Reads `batch_content` backwards, within the stretches of the
 * status.
 */
export async function listProjectBatches(sql: Sql, query: BatchQuery): Promise<BatchRow[]> {
  const { projectId, status, before, limit } = query;
  const { logIds, ends } = logsBelow(
    query.logIds,
    before && { logId: before.logId, end: before.treeSize - 1 },
  );
  return sql<BatchRow[]>`
    SELECT ${batchColumns(sql)}
    FROM unnest(${logIds}::integer[], ${ends}::bigint[]) AS l(log_id, end_index)
    CROSS JOIN LATERAL ${
      status === undefined
        ? sql`(SELECT 0::bigint AS first_index, l.end_index)`
        : sql`status_stretches(l.log_id, ${status}::smallint, l.end_index)`
    } r
    CROSS JOIN LATERAL (
      SELECT DISTINCT c.project_id, c.log_id, c.tree_size FROM batch_content c
      WHERE (c.project_id, c.log_id, c.tree_size) >= (${projectId}, l.log_id, r.first_index + 1)
        AND (c.project_id, c.log_id, c.tree_size) <= (${projectId}, l.log_id, r.end_index)
      ORDER BY c.project_id DESC, c.log_id DESC, c.tree_size DESC LIMIT ${mostRows(sql, limit)}
    ) c
    CROSS JOIN LATERAL (
      SELECT * FROM batch b WHERE b.log_id = c.log_id AND b.tree_size = c.tree_size AND b.registered_at IS NOT NULL LIMIT 1
    ) b
    ORDER BY b.log_id DESC, b.tree_size DESC LIMIT ${limit}`;
}
