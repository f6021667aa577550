import type { LeafParts } from '../../../proof/bundle/bundle.js';
import type { Sql } from '../../database/connect.js';
import { unixMsOf } from '../../database/times.js';
import { formatMs } from '../../json/well-known-types.js';
import type { ListedSubmission } from '../lists/list-row-decoder.js';
import { shownStatement } from '../statements/stored-statement.js';
import { leavesInBlocks } from './leaf-blocks.js';
import { SCHEMA_OF, WITH_NAMES } from './submission-names.js';
import type { SubmissionRow } from './submissions.js';

/**
 * A submission without its batch, as an exported line needs it: hashes in lower-case hex, the signature (DER) in base64,
 * times in Unix milliseconds.
 */
export type ExportedRow = Omit<
  ListedSubmission,
  'logId' | 'metadataErrors' | 'build' | 'batchId' | 'batchStatus' | 'witnessedAtMs'
> &
  Pick<SubmissionRow, 'metadataErrors' | 'attestedSchema' | 'dsseKeyId'> & {
    commitment: string;
    signature: string;
    /** The signed statement, or what is left of it; null if it is made of the row. */
    signed: LeafParts['statement'] | null;
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
 * A row {@link WITH_NAMES} as text, which {@link createRowReader} reads. JSON as it is stored has no line break and no tab,
 * and the other values have neither.
 */
export const EXPORTED_LINE = `
  concat_ws(E'\\t', s.log_index, s.id, s.metadata_state, s.dsse_key_id,
            encode(timestamptz_send(s.submitted_at) || s.artifact_sha256 || s.leaf_hash || s.commitment ||
                   coalesce(s.salt, ''), 'hex'),
            replace(encode(s.signature, 'base64'), E'\\n', ''),
            coalesce(encode(timestamptz_send(s.redacted_at), 'hex'), ''), to_json(${SCHEMA_OF})::text,
            coalesce(to_json(s.attested_schema)::text, ''), coalesce(s.metadata, ''),
            coalesce(s.attested_metadata, ''), coalesce(s.metadata_errors, ''), s.statement_version, (
              SELECT concat_ws(E'\\t', encode(t.digest, 'hex'), coalesce(encode(timestamptz_send(t.erased_at), 'hex'), ''),
                               coalesce(t.shown, ''), coalesce(t.text, ''))
              FROM find_statement(s.log_id, s.log_index) t WHERE s.statement_version <> 1))`;

/** Submissions as {@link listExportedRows} lists them: a line for each in UTF-8, with a line break between two. */
export type ExportedPage = Buffer;

/**
 * Lists the first `limit` submissions of a range, in the order of the log, for {@link createRowReader}. One value of the
 * database's for all: each column of a row of its own costs the client a third of a microsecond. It stays in UTF-8: a string
 * as large would be moved by the garbage collector, which would take larger heaps for it.
 */
export async function listExportedRows(
  sql: Sql,
  range: SubmissionRange,
  limit: number,
): Promise<ExportedPage> {
  const [row] = await sql`
    SELECT string_agg(${sql.unsafe(EXPORTED_LINE)}, E'\\n' ORDER BY s.log_index) AS text
    FROM (${rowsOf(sql, range, 's.*', limit)}) AS s ${sql.unsafe(WITH_NAMES)}`.raw();
  return row?.[0] ?? NO_ROWS;
}

const NO_ROWS = Buffer.alloc(0);

/** Counts the submissions of a range, up to `limit`. */
export async function countExportedRows(sql: Sql, range: SubmissionRange, limit: number): Promise<number> {
  const [row] = await sql<{ rows: number }[]>`
    SELECT count(*) AS rows FROM (${rowsOf(sql, range, '', limit)}) AS counted`;
  return row?.rows ?? 0;
}

function rowsOf(sql: Sql, range: SubmissionRange, columns: string, limit: number) {
  const { projectId, logId, firstIndex, endIndex, schema } = range;
  const names = { project: 'r.project_id', schema: schema === null ? undefined : 'r.schema' };
  const leaves = { logId: 'r.log_id', first: 'r.first_index', end: 'r.end_index' };
  const { within, order, inBlock } = leavesInBlocks({ names, ...leaves });
  return sql`
    SELECT s.* FROM (
      SELECT ${projectId}::text AS project_id, ${schema}::text AS schema, ${logId}::integer AS log_id,
             ${firstIndex}::bigint AS first_index, ${endIndex}::bigint AS end_index) r
    CROSS JOIN LATERAL (
      SELECT ${sql.unsafe(columns)} FROM submission s WHERE ${sql.unsafe(within)}
      ORDER BY ${sql.unsafe([...order, inBlock].join(', '))} LIMIT ${limit}) s`;
}

/** The log indexes of the rows of a page. */
export function logIndexesOf(page: ExportedPage): number[] {
  const indexes: number[] = [];
  for (let at = 0; at < page.length; at = endOfLine(page, at) + 1) {
    let index = 0;
    for (let i = at; page[i] !== TAB; i++) index = index * 10 + page[i]! - DIGIT_0;
    indexes.push(index);
  }
  return indexes;
}

/** Creates a function that returns the next row of a page; undefined after the last. */
export function createRowReader(page: ExportedPage): () => ExportedRow | undefined {
  let at = 0;
  return () => {
    if (at >= page.length) return undefined;
    const end = endOfLine(page, at);
    const line = page.toString('utf8', at, end);
    at = end + 1;
    return readRow(line);
  };
}

function endOfLine(page: ExportedPage, at: number): number {
  const end = page.indexOf(LINE_BREAK, at);
  return end === -1 ? page.length : end;
}

const [TAB, LINE_BREAK, DIGIT_0] = Buffer.from('\t\n0') as unknown as [number, number, number];

function readRow(line: string): ExportedRow {
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
    ...stored
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
    redactedAtMs: timeOf(redactedAt),
    ...readStored(stored),
  };
}

/** Reads the columns of a statement, of which most submissions have none but the version. */
function readStored([version, digest, erasedAt = '', shown, text]: string[]) {
  if (digest === undefined) return NOT_STORED;
  const erasedAtMs = timeOf(erasedAt);
  return {
    statement: shownStatement(Number(version), shown || null, erasedAtMs),
    signed: text || { digest: Buffer.from(digest, 'hex'), erasedAt: formatMs(erasedAtMs ?? 0) },
  };
}

const NOT_STORED = { statement: null, signed: null };

function timeOf(hex: string): number | null {
  return hex === '' ? null : unixMsOf(hex);
}

/** Reads a JSON string: one without escapes is what is between its quotes. */
function readText(json: string): string {
  return json.includes('\\') ? (JSON.parse(json) as string) : json.slice(1, -1);
}
