import { createBatchLoader } from '../../database/batch-loader.js';
import type { Pool, Sql } from '../../database/connect.js';
import { ownTiles } from '../../log/store/tiles.js';
import { stampsText } from '../stamps/stored-stamps.js';
import { StatementVersion } from '../statements/stored-statement.js';
import { PROJECT_OF, SCHEMA_OF, WITH_NAMES } from './submission-names.js';

/** A submission and its batch. The batch members are null until a published batch contains it. */
export type SubmissionRow = {
  logId: number;
  logIndex: number;
  id: string;
  projectId: string;
  submittedAt: Date;
  artifactSha256: Uint8Array;
  schema: string;
  metadata: string | null;
  /** Proto MetadataState number. */
  metadataState: number;
  /** JSON text of `[{path, message}]`. */
  metadataErrors: string | null;
  attestedSchema: string | null;
  attestedMetadata: string | null;
  salt: Uint8Array | null;
  commitment: Uint8Array;
  dsseKeyId: number;
  signature: Uint8Array;
  leafHash: Uint8Array;
  redactedAt: Date | null;
  build: string | null;
  /** How the signed statement is known: a `StatementVersion`. */
  statementVersion: number;
  /** JSON of what is shown of a stored statement. */
  statementShown: string | null;
  statementErasedAt: Date | null;
  batchId: string | null;
  batchTreeSize: number | null;
  /** Proto BatchStatus number. */
  batchStatus: number | null;
  witnessedAt: Date | null;
  /** The transaction that wrote this version of the row (xmin). Changes with each update, but not with the batch. */
  version: string;
  /** The lowest tiles of its inclusion proof, joined, in base64, see {@link ownTiles}; null without a published batch. */
  ownTiles: string | null;
  /** The project's count of metadata changes when the row was read. */
  projectChanges: number;
  /** The time stamps over its signature, see `parseStamps`. */
  stamps: string;
};

const submissionColumns = (sql: Sql) => sql`
  s.log_id AS "logId", s.log_index AS "logIndex", s.id, ${sql.unsafe(PROJECT_OF)} AS "projectId",
  s.submitted_at AS "submittedAt", s.artifact_sha256 AS "artifactSha256", ${sql.unsafe(SCHEMA_OF)} AS schema, s.metadata,
  s.metadata_state AS "metadataState",
  s.metadata_errors AS "metadataErrors", s.attested_schema AS "attestedSchema",
  s.attested_metadata AS "attestedMetadata", s.salt, s.commitment, s.dsse_key_id AS "dsseKeyId", s.signature,
  s.leaf_hash AS "leafHash", s.redacted_at AS "redactedAt", s.build, s.statement_version AS "statementVersion",
  t.shown AS "statementShown", t.erased_at AS "statementErasedAt", b.id AS "batchId", b.tree_size AS "batchTreeSize",
  b.status AS "batchStatus", b.witnessed_at AS "witnessedAt",
  s.xmin::text AS version, CASE WHEN b.registered_at IS NOT NULL THEN (${ownTiles(sql)}) END AS "ownTiles",
  coalesce((SELECT c.changes FROM metadata_change c WHERE c.project_id = ${sql.unsafe(PROJECT_OF)}), 0) AS "projectChanges",
  ${stampsText(sql)} AS stamps`;

/** Joins the published batch `b` that contains a submission `s`: the first that ends behind its index. */
const withBatch = (sql: Sql) => sql`
  LEFT JOIN LATERAL (
    SELECT * FROM batch b WHERE b.log_id = s.log_id AND b.tree_size > s.log_index ORDER BY b.tree_size LIMIT 1
  ) b ON b.registered_at IS NOT NULL`;

/** Joins the stored statement `t` of a submission `s`, without its text. Reads nothing if there is none. */
const withStatement = (sql: Sql) => sql`
  LEFT JOIN LATERAL (
    SELECT t.shown, t.erased_at FROM find_statement(s.log_id, s.log_index) t
    WHERE s.statement_version <> ${StatementVersion.OF_ROW}::integer
  ) t ON true`;

/**
 * Finds submissions by id, of any project, in no order. The inner SELECT hides from Postgres how many ids there are, so that
 * it plans once, not each time that there are few: one row takes it 80 µs, with planning 286. By LIMIT in LATERAL, because
 * such a plan of an empty table would read all of it for as long as it is kept.
 */
export async function findSubmissions(sql: Sql, ids: readonly string[]): Promise<SubmissionRow[]> {
  return sql<SubmissionRow[]>`
    SELECT ${submissionColumns(sql)} FROM unnest((SELECT ${[...ids]}::text[])) wanted(id)
    CROSS JOIN LATERAL (
      SELECT s.xmin, s.* FROM submission s
      WHERE substr(s.id, 5, 15) = substr(wanted.id, 5, 15) AND s.id = wanted.id LIMIT 1) s
    ${sql.unsafe(WITH_NAMES)} ${withBatch(sql)} ${withStatement(sql)}`;
}

const LOADING = { maxKeys: 200, maxInFlight: 4 };
/** All callers read the same few keys, so waiting for one query batches well. */
const CHANGES_LOADING = { maxKeys: 200, maxInFlight: 2 };

/** Creates the look-up of submissions of any project by id; concurrent ones share a query. */
export function createSubmissionLoader(pool: Pool): (id: string) => Promise<SubmissionRow | undefined> {
  return createBatchLoader(
    async (ids) => new Map((await findSubmissions(pool, ids)).map((row) => [row.id, row])),
    LOADING,
  );
}

/** Creates the count of a project's metadata changes; undefined if there are none. Concurrent ones share a query. */
export function createChangeCounter(pool: Pool): (projectId: string) => Promise<number | undefined> {
  return createBatchLoader((projectIds) => countMetadataChanges(pool, projectIds), CHANGES_LOADING);
}

async function countMetadataChanges(sql: Sql, projectIds: readonly string[]): Promise<Map<string, number>> {
  const rows = await sql<{ id: string; changes: number }[]>`
    SELECT project_id AS id, changes FROM metadata_change WHERE project_id = ANY(${[...projectIds]})`;
  return new Map(rows.map(({ id, changes }) => [id, changes]));
}
