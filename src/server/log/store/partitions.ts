/**
 * The partitions of `submission`, each a range of the leaves of one log. A log has its first one from the transaction on
 * that creates it (`add_first_partition`); workers add further ones ahead of its leaves, never an append.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Pool, Sql } from '../../database/connect.js';
import { errorCode } from '../../database/database-errors.js';

/** A partition: the leaves `[firstIndex, endIndex)` of a log. */
export type Partition = { name: string; logId: number; firstIndex: number; endIndex: number };

/**
 * Lists the partitions of a log, oldest first. A log from before there were any has none of its own: it is in
 * `submission_former` for good.
 */
export async function listPartitions(sql: Sql, logId: number): Promise<Partition[]> {
  return sql<Partition[]>`
    SELECT name, log_id AS "logId", first_index AS "firstIndex", end_index AS "endIndex" FROM submission_partition
    WHERE log_id = ${logId} ORDER BY first_index`;
}

/** A log that is written to and has no whole partition ahead. */
export type Unprepared = {
  logId: number;
  origin: string;
  /** Whether the next leaf has a partition: otherwise nothing can be appended. */
  hasRoom: boolean;
};

/** Finds the logs of newest epochs, not frozen, without a whole partition behind that of the next leaf. */
export async function findUnprepared(sql: Sql): Promise<Unprepared[]> {
  return sql<Unprepared[]>`
    WITH part AS MATERIALIZED (SELECT * FROM submission_partition)
    SELECT l.id AS "logId", l.origin, EXISTS (
      SELECT FROM part p WHERE p.log_id = l.id AND p.first_index <= s.size AND p.end_index > s.size) AS "hasRoom"
    FROM log l CROSS JOIN LATERAL (
      SELECT coalesce(max(log_index) + 1, 0) AS size FROM submission WHERE log_id = l.id) s
    WHERE l.frozen_at IS NULL
      AND NOT EXISTS (SELECT FROM log n
                      WHERE n.environment = l.environment AND n.lane = l.lane AND n.epoch > l.epoch)
      AND NOT EXISTS (SELECT FROM part p WHERE p.log_id = l.id AND p.first_index > s.size)
      AND NOT EXISTS (SELECT FROM part p WHERE p.log_id IS NULL AND p.end_log_id > l.id)
    ORDER BY l.id`;
}

/** Longer than any transaction holds the table, but a manual VACUUM or ANALYZE of it. */
const LOCK_TIMEOUT = '5s';

/**
 * Adds partitions until each log that is written to has a whole one ahead. Submissions are read and written meanwhile.
 * Several workers may do it at once. Throws a lock timeout (55P03) while a VACUUM or ANALYZE of the whole table runs.
 *
 * @param leaves the size of new partitions, for tests; else that of `add_submission_partition`
 * @returns the names of the partitions that were added
 */
export async function addSparePartitions(pool: Pool, leaves?: number): Promise<string[]> {
  if ((await findUnprepared(pool)).length === 0) return [];
  return pool.begin(async (tx) => {
    await tx`SELECT set_config('lock_timeout', ${LOCK_TIMEOUT}, true)`;
    await tx`LOCK TABLE submission IN SHARE UPDATE EXCLUSIVE MODE`;
    const added: string[] = [];
    for (let logs = await findUnprepared(tx); logs.length > 0; logs = await findUnprepared(tx))
      for (const { logId } of logs) added.push(await addPartition(tx, logId, leaves));
    return added;
  });
}

/** Adds partitions to a log, within a transaction, until its first `size` leaves have some. */
export async function coverLeaves(tx: Sql, logId: number, size: number): Promise<void> {
  const [row] = await tx<{ isFormer: boolean; end: number }[]>`
    SELECT coalesce(bool_or(log_id IS NULL AND end_log_id > ${logId}), false) AS "isFormer",
      coalesce(max(end_index) FILTER (WHERE log_id = ${logId}), 0) AS "end"
    FROM submission_partition`;
  if (row === undefined || row.isFormer || row.end >= size) return;
  await addPartition(tx, logId, undefined);
  await coverLeaves(tx, logId, size);
}

async function addPartition(tx: Sql, logId: number, leaves: number | undefined): Promise<string> {
  const size = leaves === undefined ? tx`` : tx`, ${leaves}`;
  const [row] = await tx<{ name: string | null }[]>`SELECT add_submission_partition(${logId}${size}) AS name`;
  if (typeof row?.name !== 'string') throw new Error(`log ${logId} has no partitions of its own`);
  return row.name;
}

/**
 * Detaches a partition: its rows are in the table of its name alone then, and no call finds them. Reads and writes go on;
 * waits for the transactions that began before. What was interrupted is finished by the next call. Throws if the log does
 * not go on behind the partition, and is not archived to its end: its next index would be found anew.
 */
export async function detachPartition(pool: Pool, partition: Partition): Promise<void> {
  await takeTurn(pool, (connection) => detach(connection, partition));
}

/** Detaches a partition as {@link detachPartition}, and deletes its rows for good. */
export async function dropPartition(pool: Pool, partition: Partition): Promise<void> {
  await detachPartition(pool, partition);
  await dropTable(pool, partition.name);
}

/**
 * Drops the partitions of a log that have only leaves below `archivedSize`, whose rows are removed, after those of which a run that
 * ended early has left the tables.
 */
export async function dropEmptied(pool: Pool, logId: number, archivedSize: number): Promise<void> {
  await takeTurn(pool, async (connection) => {
    await dropLeftovers(connection);
    const emptied = (await listPartitions(connection, logId)).filter(
      ({ endIndex }) => endIndex <= archivedSize,
    );
    for (const partition of emptied) {
      await detach(connection, partition);
      await dropTable(connection, partition.name);
    }
  });
}

type Connection = Awaited<ReturnType<Pool['reserve']>>;

const RETRY_MS = 100;

/**
 * Detaches one partition at a time, as Postgres does, on a connection without a time limit. Also behind the connection of a process that
 * was killed: Postgres goes on with its statement. Waits without a statement, because detaching waits for older ones.
 */
async function takeTurn(pool: Pool, use: (connection: Connection) => Promise<void>): Promise<void> {
  const connection = await pool.reserve();
  const take = () => connection<{ taken: boolean }[]>`
    SELECT pg_try_advisory_lock(hashtextextended('partitions of submission', 0)) AS taken`;
  try {
    await connection`SET statement_timeout = 0`;
    for (let [turn] = await take(); !turn?.taken; [turn] = await take()) await delay(RETRY_MS);
    await use(connection);
  } finally {
    await connection`RESET statement_timeout`.catch(() => {});
    await connection`SELECT pg_advisory_unlock(hashtextextended('partitions of submission', 0))`.catch(
      () => {},
    );
    connection.release();
  }
}

async function detach(connection: Connection, { name, logId, endIndex }: Partition): Promise<void> {
  const [state] = await connection<{ isPending: boolean; goesOn: boolean }[]>`
    SELECT i.inhdetachpending AS "isPending",
      EXISTS (SELECT FROM submission WHERE log_id = ${logId} AND log_index >= ${endIndex})
        OR (SELECT archived_size FROM log WHERE id = ${logId}) >= ${endIndex} AS "goesOn"
    FROM pg_inherits i WHERE i.inhparent = 'submission'::regclass AND i.inhrelid = to_regclass(${name})`;
  if (state === undefined) return;
  if (!state.goesOn) throw new Error(`${name} has the newest leaves of log ${logId}: it cannot be detached`);
  await connection.unsafe(
    `ALTER TABLE submission DETACH PARTITION ${name} ${state.isPending ? 'FINALIZE' : 'CONCURRENTLY'}`,
  );
}

/** Finishes a detachment that was interrupted, of any log, and drops the tables of former partitions that have no rows. */
async function dropLeftovers(connection: Connection): Promise<void> {
  const left = await connection<{ name: string; isPending: boolean }[]>`
    SELECT c.relname::text AS name, i.inhrelid IS NOT NULL AS "isPending"
    FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid AND i.inhparent = 'submission'::regclass
    WHERE c.relkind = 'r' AND c.relname ~ '^submission_[0-9]+_[0-9]+$'
      AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'submission'::regclass)
      AND (i.inhrelid IS NULL OR i.inhdetachpending)`;
  for (const { name, isPending } of left) {
    if (isPending) await connection.unsafe(`ALTER TABLE submission DETACH PARTITION ${name} FINALIZE`);
    if ((await connection.unsafe(`SELECT FROM ${name} LIMIT 1`)).length === 0)
      await dropTable(connection, name);
  }
}

const dropTable = (sql: Sql, name: string) => sql.unsafe(`DROP TABLE IF EXISTS ${name}`);

const CHECK_VIOLATION_SQLSTATE = '23514';

/** Returns whether a row was stored nowhere because no partition is for it; a check that it violates has a name. */
export function isLackingPartition(error: unknown): boolean {
  if (errorCode(error) !== CHECK_VIOLATION_SQLSTATE) return false;
  const { table_name: table, constraint_name: constraint } = error as Record<string, unknown>;
  return table === 'submission' && constraint === undefined;
}
