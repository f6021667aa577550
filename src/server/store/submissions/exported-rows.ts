import type { Sql } from '../database/connect.js';
import { unixMsOf } from './listed-batches.js';
import type { ListedSubmission } from './listed-columns.js';
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

/**
 * A row as text, which {@link readExportedRow} reads. JSON as it is stored has no line break and no tab, and the other
 * values have neither.
 */
const LINE = `
  concat_ws(E'\\t', s.log_index, s.id, s.metadata_state, s.dsse_key_id,
            encode(timestamptz_send(s.submitted_at) || s.artifact_sha256 || s.leaf_hash || s.commitment ||
                   coalesce(s.salt, ''), 'hex'),
            replace(encode(s.signature, 'base64'), E'\\n', ''),
            coalesce(encode(timestamptz_send(s.redacted_at), 'hex'), ''), to_json(s.schema)::text,
            coalesce(to_json(s.attested_schema)::text, ''), coalesce(s.metadata, ''),
            coalesce(s.attested_metadata, ''), coalesce(s.metadata_errors, ''))`;

/**
 * Lists the first `limit` submissions of a range, in the order of the log, for {@link readExportedRow}. One value of the
 * database's for all: each column of a row of its own costs the client a third of a microsecond.
 */
export async function listExportedRows(sql: Sql, range: SubmissionRange, limit: number): Promise<string[]> {
  const [row] = await sql<{ text: string | null }[]>`
    SELECT string_agg(line, E'\\n' ORDER BY log_index) AS text
    FROM (
      SELECT s.log_index, ${sql.unsafe(LINE)} AS line FROM submission s WHERE ${isIn(sql, range)}
      ORDER BY s.log_index LIMIT ${limit}) AS page`;
  return row?.text?.split('\n') ?? [];
}

/** Counts the submissions of a range, up to `limit`. */
export async function countExportedRows(sql: Sql, range: SubmissionRange, limit: number): Promise<number> {
  const [row] = await sql<{ rows: number }[]>`
    SELECT count(*) AS rows
    FROM (SELECT FROM submission s WHERE ${isIn(sql, range)} ORDER BY s.log_index LIMIT ${limit}) AS counted`;
  return row?.rows ?? 0;
}

function isIn(sql: Sql, { projectId, logId, firstIndex, endIndex, schema }: SubmissionRange) {
  return sql`
    s.project_id = ${projectId} AND s.log_id = ${logId}
    AND s.log_index >= ${firstIndex} AND s.log_index < ${endIndex}
    ${schema === null ? sql`` : sql`AND s.schema = ${schema}`}`;
}

/** The log index of a row as {@link listExportedRows} lists it. */
export function logIndexOf(line: string): number {
  return Number(line.slice(0, line.indexOf('\t')));
}

/** Reads a row as {@link listExportedRows} lists it. */
export function readExportedRow(line: string): ExportedRow {
  const [
    logIndex,
    id = '',
    state,
    keyId,
    bytes = '',
    signature = '',
    redactedAt = '',
    schema = '',
    attestedSchema = '',
    metadata,
    attestedMetadata,
    errors,
  ] = line.split('\t');
  return {
    logIndex: Number(logIndex),
    id,
    submittedAtMs: unixMsOf(bytes),
    artifactSha256: bytes.slice(16, 80),
    leafSha256: bytes.slice(80, 144),
    commitment: bytes.slice(144, 208),
    salt: bytes.slice(208) || null,
    schema: readText(schema),
    metadata: metadata || null,
    metadataState: Number(state),
    metadataErrors: errors || null,
    attestedSchema: attestedSchema === '' ? null : readText(attestedSchema),
    attestedMetadata: attestedMetadata || null,
    dsseKeyId: Number(keyId),
    signature,
    redactedAtMs: redactedAt === '' ? null : unixMsOf(redactedAt),
  };
}

/** Reads a JSON string: one without escapes is what is between its quotes. */
function readText(json: string): string {
  return json.includes('\\') ? (JSON.parse(json) as string) : json.slice(1, -1);
}
