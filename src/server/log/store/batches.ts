import type { Tile } from '../../../proof/log/tile.js';
import type { Sql } from '../../database/connect.js';
import { logsBelow, mostRows } from './list-pages.js';
import { newestPolicy, noPolicy } from './policies.js';
import { leafTileInsertion, tileInsertion } from './tiles.js';

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

/** Finds the largest published batch that ends beyond a size and not beyond another; if there is none, the next one. */
export async function findBatchBelow(
  sql: Sql,
  logId: number,
  above: number,
  most: number,
): Promise<BatchRow | undefined> {
  const rows = await sql<BatchRow[]>`
    (SELECT ${batchColumns(sql)} FROM batch b
     WHERE b.log_id = ${logId} AND b.registered_at IS NOT NULL AND b.tree_size > ${above} AND b.tree_size <= ${most}
     ORDER BY b.tree_size DESC LIMIT 1)
    UNION ALL
    (SELECT ${batchColumns(sql)} FROM batch b
     WHERE b.log_id = ${logId} AND b.registered_at IS NOT NULL AND b.tree_size > ${most}
     ORDER BY b.tree_size LIMIT 1)`;
  return rows[0];
}

/** Batches of a log at one moment: the newest, the newest published one, and the one that ends at a size. */
type StandingBatches = Record<'newest' | 'published' | 'ofSize', BatchRow | undefined>;

/** Finds {@link StandingBatches} in one statement: of several, each could be answered by another database. */
export async function findStandingBatches(sql: Sql, logId: number, size: number): Promise<StandingBatches> {
  const rows = await sql<(BatchRow & { place: keyof StandingBatches })[]>`
    SELECT ${batchColumns(sql)}, found.place FROM (
      (SELECT 'newest' AS place, log_id, tree_size FROM batch
       WHERE log_id = ${logId} ORDER BY tree_size DESC LIMIT 1)
      UNION ALL
      (SELECT 'published', log_id, tree_size FROM batch
       WHERE log_id = ${logId} AND registered_at IS NOT NULL ORDER BY tree_size DESC LIMIT 1)
      UNION ALL
      SELECT 'ofSize', ${logId}, ${size}::bigint
    ) found JOIN batch b ON b.log_id = found.log_id AND b.tree_size = found.tree_size`;
  const at = (place: keyof StandingBatches) => rows.find((row) => row.place === place);
  return { newest: at('newest'), published: at('published'), ofSize: at('ofSize') };
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

/**
 * Returns whether this database holds a batch, by size and root, as durably as what it writes now (`confirm_durable`): a
 * batch can be seen before the synchronous standby has it.
 */
export async function findDurableBatch(
  sql: Sql,
  { logId, treeSize, rootHash }: Pick<BatchRow, 'logId' | 'treeSize' | 'rootHash'>,
): Promise<boolean> {
  const rows = await sql`
    SELECT confirm_durable() FROM batch
    WHERE log_id = ${logId} AND tree_size = ${treeSize} AND root_hash = ${rootHash}`;
  return rows.length > 0;
}

/** A sealed batch and the tiles that its tree has added or extended. */
type NewBatch = Pick<BatchRow, 'logId' | 'treeSize' | 'id' | 'firstIndex' | 'rootHash' | 'note'> & {
  environment: number;
  tiles: readonly Tile[];
};

/**
 * Inserts a sealed batch, its tiles, and the number of its submissions per project and schema, in one statement. The
 * newest policy of the environment is that of the batch. Throws if there is none.
 */
export async function insertBatch(sql: Sql, batch: NewBatch): Promise<void> {
  const { logId, treeSize, firstIndex, environment, tiles } = batch;
  const [ofLeaves, above] = [
    tiles.filter(({ level }) => level === 0),
    tiles.filter(({ level }) => level > 0),
  ];
  const [{ policies } = { policies: 0 }] = await sql<{ policies: number }[]>`
    WITH newest AS MATERIALIZED (${newestPolicy(sql, environment)}),
    leaf_tiles AS (${leafTileInsertion(sql, logId, treeSize, ofLeaves)}),
    upper_tiles AS (${tileInsertion(sql, logId, above)}),
    sealed AS (
      INSERT INTO batch (log_id, tree_size, id, first_index, root_hash, note, policy_version, sealed_at, deadline_at)
      SELECT ${logId}, ${treeSize}::bigint, ${batch.id}, ${firstIndex}::bigint, ${batch.rootHash}::bytea, ${batch.note},
             version, clock_timestamp(), clock_timestamp() + "deadlineMs" * interval '1 millisecond'
      FROM newest),
    contents AS (
      INSERT INTO batch_content (log_id, tree_size, project_id, schema, submissions, first_index, last_index)
      SELECT ${logId}, ${treeSize}::bigint, coalesce(s.project_id, n.project_id), coalesce(s.schema, n.schema), sum(leaves),
             min(first_index), max(last_index)
      FROM (
        SELECT project_id, schema, schema_number, count(*) AS leaves, min(log_index) AS first_index,
               max(log_index) AS last_index
        FROM submission WHERE log_id = ${logId} AND log_index >= ${firstIndex} AND log_index < ${treeSize}
        GROUP BY project_id, schema, schema_number) s
      LEFT JOIN submission_name n ON n.number = s.schema_number
      GROUP BY 3, 4)
    SELECT count(*) AS policies FROM newest`;
  if (policies === 0) throw noPolicy(environment);
}

/** Maximum backoff of a failing witness while a batch within its deadline waits for it. */
export const LAST_BACKOFF_MS = 30_000;

/**
 * Marks every batch of the log up to this one as registered, and so published, and limits the wait of failing witnesses
 * to {@link LAST_BACKOFF_MS}: there is a new checkpoint. Does nothing if this database lacks the batch itself, by size and root. One
 * statement.
 *
 * @returns whether any had not been marked
 */
export async function publishBatches(
  sql: Sql,
  { logId, treeSize, rootHash }: Pick<BatchRow, 'logId' | 'treeSize' | 'rootHash'>,
): Promise<boolean> {
  const [{ published } = { published: 0 }] = await sql<{ published: number }[]>`
    WITH marked AS (
      UPDATE batch SET registered_at = clock_timestamp()
      WHERE log_id = ${logId} AND tree_size <= ${treeSize} AND registered_at IS NULL AND EXISTS (
        SELECT FROM batch b WHERE b.log_id = ${logId} AND b.tree_size = ${treeSize} AND b.root_hash = ${rootHash})
      RETURNING tree_size),
    due AS (
      UPDATE witness_state SET next_attempt_at = clock_timestamp() + ${LAST_BACKOFF_MS}::bigint * interval '1 millisecond'
      WHERE log_id = ${logId} AND failures > 0 AND EXISTS (SELECT FROM marked)
        AND next_attempt_at > clock_timestamp() + ${LAST_BACKOFF_MS}::bigint * interval '1 millisecond')
    SELECT count(*) AS published FROM marked`;
  return published > 0;
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
      ORDER BY c.project_id DESC, c.log_id DESC, c.tree_size DESC LIMIT ${sql.unsafe(String(mostRows(limit)))}
    ) c
    CROSS JOIN LATERAL (
      SELECT * FROM batch b WHERE b.log_id = c.log_id AND b.tree_size = c.tree_size AND b.registered_at IS NOT NULL LIMIT 1
    ) b
    ORDER BY b.log_id DESC, b.tree_size DESC LIMIT ${limit}`;
}
