import type { Sql } from '../database/connect.js';
import type { ListedSubmission } from './listed-lines.js';
import type { SubmissionRow } from './submissions.js';

/**
 * A submission without its batch, as an exported line needs it: hashes in lower-case hex, the signature (DER) in base64,
 * times in Unix milliseconds.
 */
export type ExportedRow = Omit<
  ListedSubmission,
  'logId' | 'metadataErrors' | 'batchId' | 'batchStatus' | 'witnessedAtMs'
> &
  Pick<SubmissionRow, 'metadataErrors' | 'attestedSchema' | 'dsseKeyId'> & {
    commitment: string;
    signature: string;
  };

/** A project's submissions in a range of a log, `[firstIndex, endIndex)`; of one schema unless it is null. */
type SubmissionRange = {
  projectId: string;
  logId: number;
  firstIndex: number;
  endIndex: number;
  schema: string | null;
};

/** Lists the first `limit` submissions of a range, in the order of the log. */
export async function listExportedRows(
  sql: Sql,
  range: SubmissionRange,
  limit: number,
): Promise<ExportedRow[]> {
  const { projectId, logId, firstIndex, endIndex, schema } = range;
  return sql<ExportedRow[]>`
    SELECT s.log_index AS "logIndex", s.id, ${unixMs(sql, sql`s.submitted_at`)} AS "submittedAtMs",
      encode(s.artifact_sha256, 'hex') AS "artifactSha256", s.schema, s.metadata, s.metadata_state AS "metadataState",
      s.metadata_errors AS "metadataErrors", s.attested_schema AS "attestedSchema",
      s.attested_metadata AS "attestedMetadata", encode(s.salt, 'hex') AS salt, encode(s.commitment, 'hex') AS commitment,
      s.dsse_key_id AS "dsseKeyId", replace(encode(s.signature, 'base64'), chr(10), '') AS signature,
      encode(s.leaf_hash, 'hex') AS "leafSha256", ${unixMs(sql, sql`s.redacted_at`)} AS "redactedAtMs"
    FROM submission s
    WHERE s.project_id = ${projectId} AND s.log_id = ${logId}
      AND s.log_index >= ${firstIndex} AND s.log_index < ${endIndex}
      ${schema === null ? sql`` : sql`AND s.schema = ${schema}`}
    ORDER BY s.log_index LIMIT ${limit}`;
}

/** A time as Unix milliseconds. */
function unixMs(sql: Sql, time: ReturnType<Sql>) {
  return sql`floor(extract(epoch FROM ${time}) * 1000)::bigint`;
}
