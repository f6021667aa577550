import type { Sql } from '../database/connect.js';

/** Returns the number of leaves of a log, which is the next index. */
export async function readLogSize(sql: Sql, logId: number): Promise<number> {
  const rows = await sql<{ size: number }[]>`
    SELECT coalesce(max(log_index) + 1, 0) AS size FROM submission WHERE log_id = ${logId}`;
  return rows[0]?.size ?? 0;
}

/**
 * Reads the number of leaves of a log, and how long ago the batch that ends at `treeSize` was sealed, in milliseconds of
 * the database's clock; null without such a batch.
 */
export async function readGrowth(
  sql: Sql,
  logId: number,
  treeSize: number,
): Promise<{ logSize: number; ageMs: number | null }> {
  const [row] = await sql<{ logSize: number; ageMs: number | null }[]>`
    SELECT coalesce(max(log_index) + 1, 0) AS "logSize", (
      SELECT floor(extract(epoch FROM clock_timestamp() - sealed_at) * 1000)::bigint FROM batch
      WHERE log_id = ${logId} AND tree_size = ${treeSize}) AS "ageMs"
    FROM submission WHERE log_id = ${logId}`;
  return row ?? { logSize: 0, ageMs: null };
}

/** Reads the leaf hashes of `[first, end)` in order. Throws if any is missing: a log has no gaps. */
export async function readLeafHashes(
  sql: Sql,
  logId: number,
  first: number,
  end: number,
): Promise<Uint8Array[]> {
  const rows = await sql<{ hashes: Uint8Array | null }[]>`
    SELECT string_agg(leaf_hash, ''::bytea ORDER BY log_index) AS hashes FROM submission
    WHERE log_id = ${logId} AND log_index >= ${first} AND log_index < ${end}`;
  const joined = rows[0]?.hashes ?? new Uint8Array();
  if (joined.length !== (end - first) * 32) {
    throw new Error(`log ${logId} has ${joined.length / 32} leaves in [${first}, ${end})`);
  }
  return Array.from({ length: end - first }, (_, i) => joined.subarray(i * 32, i * 32 + 32));
}

/** The data of a leaf record as JSON: hashes in lower-case hex, the time in Unix milliseconds. */
export type LeafRow = {
  id: string;
  projectId: string;
  submittedAtMs: number;
  artifactSha256: string;
  /** The attested schema, not that of a later correction. */
  schema: string;
  commitment: string;
  dsseKeyId: number;
  /** DER in base64. */
  signature: string;
};

/**
 * Reads the leaves of `[first, end)` in order, as one JSON text, without metadata and batches. Omits missing leaves.
 */
export async function readLeafRows(sql: Sql, logId: number, first: number, end: number): Promise<LeafRow[]> {
  const [found] = await sql<{ rows: LeafRow[] | null }[]>`
    SELECT json_agg(leaf) AS rows FROM (
      SELECT id, project_id AS "projectId", floor(extract(epoch FROM submitted_at) * 1000)::bigint AS "submittedAtMs",
             encode(artifact_sha256, 'hex') AS "artifactSha256", coalesce(attested_schema, schema) AS schema,
             encode(commitment, 'hex') AS commitment, dsse_key_id AS "dsseKeyId",
             replace(encode(signature, 'base64'), chr(10), '') AS signature
      FROM submission WHERE log_id = ${logId} AND log_index >= ${first} AND log_index < ${end} ORDER BY log_index) leaf`;
  return found?.rows ?? [];
}

/** Reads the leaf hash at an index. Returns undefined if the log is shorter. */
export async function findLeafHash(
  sql: Sql,
  logId: number,
  logIndex: number,
): Promise<Uint8Array | undefined> {
  const [row] = await sql<{ leafHash: Uint8Array }[]>`
    SELECT leaf_hash AS "leafHash" FROM submission WHERE log_id = ${logId} AND log_index = ${logIndex}`;
  return row?.leafHash;
}
