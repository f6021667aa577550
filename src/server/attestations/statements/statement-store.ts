import { createBatchLoader } from '../../database/batch-loader.js';
import type { Pool, Sql } from '../../database/connect.js';
import { isOfId } from '../submissions/by-id.js';
import type { StoredStatement } from './stored-statement.js';

/** Reads the stored statement of a leaf. Rejects if it has none. */
export type ReadStatement = (leaf: { logId: number; logIndex: number }) => Promise<StoredStatement>;

/** A statement has 128 KiB at most. */
const LOADING = { maxKeys: 16, maxInFlight: 2 };

/** Creates the look-up of stored statements; concurrent ones share a query. */
export function createStatementReader(pool: Pool): ReadStatement {
  const find = createBatchLoader(async (keys) => {
    const rows = await findStatements(pool, keys);
    return new Map(rows.map((row) => [row.key, row]));
  }, LOADING);
  return async ({ logId, logIndex }) => {
    const found = await find(`${logId} ${logIndex}`);
    if (found === undefined) throw new Error(`the statement of leaf ${logIndex} of log ${logId} is missing`);
    return found;
  };
}

type Row = StoredStatement & { key: string };

async function findStatements(sql: Sql, keys: readonly string[]): Promise<Row[]> {
  const places = keys.map((key) => key.split(' ').map(Number));
  return sql<Row[]>`
    SELECT concat_ws(' ', wanted.log_id, wanted.log_index) AS key, t.text, t.digest, t.erased_at AS "erasedAt"
    FROM unnest(${places.map(([logId = 0]) => logId)}::integer[], ${places.map(([, index = 0]) => index)}::bigint[])
      AS wanted(log_id, log_index)
    CROSS JOIN LATERAL find_statement(wanted.log_id, wanted.log_index) t`;
}

/** Locks a submission of any project until the transaction ends, as changes of metadata do. */
export async function lockStatement(tx: Sql, id: string): Promise<void> {
  await tx`SELECT FROM submission s WHERE ${isOfId(tx, id)} FOR NO KEY UPDATE`;
}

/** Whether a submission has a stored statement, and when that was erased. */
type Erasable = { projectId: string; isStored: boolean; erasedAt: Date | null };

/** Finds a submission of any project. */
export async function findErasable(sql: Sql, id: string): Promise<Erasable | undefined> {
  const [row] = await sql<Erasable[]>`
    SELECT s.project_id AS "projectId", t.digest IS NOT NULL AS "isStored", t.erased_at AS "erasedAt"
    FROM named_submission s LEFT JOIN LATERAL find_statement(s.log_id, s.log_index) t ON true
    WHERE ${isOfId(sql, id)}`;
  return row;
}

/** Erases what the API shows and finds of a submission's statement. The caller holds the lock of the submission. */
export async function redactStatement(tx: Sql, id: string): Promise<void> {
  await tx`
    UPDATE submission_statement t SET shown = NULL, subjects = NULL FROM submission s
    WHERE ${isOfId(tx, id)} AND t.log_id = s.log_id AND t.log_index = s.log_index`;
}

/** Erases the text of a submission's statement. The caller holds the lock of the submission. */
export async function eraseStatementText(tx: Sql, id: string): Promise<void> {
  await tx`
    UPDATE submission_statement t SET text = NULL, erased_at = clock_timestamp() FROM submission s
    WHERE ${isOfId(tx, id)} AND t.log_id = s.log_id AND t.log_index = s.log_index AND t.erased_at IS NULL`;
}
