import type { Sql } from '../database/connect.js';
import { logsBelow, mostRows } from './list-pages.js';
import { type SubmissionRow, withBatch } from './submissions.js';

/** A place in the order of lists: logs by id, submissions by index. */
type SubmissionPosition = { logId: number; logIndex: number };

/** A query of a project's submissions; `status` is a proto SubmissionStatus number. Times are exclusive. */
export type SubmissionQuery = {
  projectId: string;
  logIds: readonly number[];
  artifactSha256?: Uint8Array | undefined;
  schema: string | undefined;
  status: number | undefined;
  submittedAfter: Date | undefined;
  submittedBefore: Date | undefined;
  before: SubmissionPosition | undefined;
  limit: number;
};

/** A submission in a list: hashes in lower-case hex, times in Unix milliseconds. `schema` is empty unless it is redacted. */
export type ListedSubmission = Pick<
  SubmissionRow,
  | 'logId'
  | 'logIndex'
  | 'id'
  | 'schema'
  | 'metadata'
  | 'metadataState'
  | 'attestedMetadata'
  | 'batchId'
  | 'batchStatus'
> & {
  submittedAtMs: number;
  artifactSha256: string;
  metadataErrors: { path: string; message: string }[] | null;
  salt: string | null;
  leafSha256: string;
  redactedAtMs: number | null;
  witnessedAtMs: number | null;
};

/**
 * A page of submissions. `isCut` if their metadata filled the page before its row limit. `stoppedAt` is the submission
 * at which the search for an artifact stopped, if it looked at as many as a page may.
 */
type SubmissionPage = {
  rows: ListedSubmission[];
  isCut: boolean;
  stoppedAt: SubmissionPosition | undefined;
};

/** The most bytes of metadata in a page, with errors and metadata attested before a correction. */
const MAX_METADATA_BYTES = 512 * 1024;

/**
 * How many submissions a page looks at that may be of an artifact: 10 to 20 ms of Postgres if they are in memory. It
 * needs as many only for one that is among the project's newest, not indexed yet, or submitted again and again.
 */
const MAX_CANDIDATES = 10_000;

/** One line of text a submission in each, see {@link shownLine}. */
type FoundPage = {
  rows: string | null;
  metadata: string | null;
  attested: string | null;
  errors: string | null;
  isCut: boolean | null;
  stoppedAt: SubmissionPosition | null;
};

/**
 * Lists a project's submissions, newest first, with at most {@link MAX_METADATA_BYTES} of metadata unless the first
 * alone has more. A page comes as lines of text: as JSON it takes Postgres 40 to 190 µs longer, and has to be parsed.
 */
export async function listSubmissions(sql: Sql, query: SubmissionQuery): Promise<SubmissionPage> {
  const [page] = await sql<FoundPage[]>`
    ${foundArtifact(sql, query)}
    SELECT ${stoppedAt(sql, query)} AS "stoppedAt", ${joined(sql, shownLine(sql))} AS rows,
           ${joined(sql, sql`coalesce(page.metadata, to_json(page.schema)::text)`)} AS metadata,
           ${joined(sql, sql`coalesce(page.attested_metadata, '')`)} AS attested,
           ${joined(sql, sql`coalesce(page.metadata_errors, '')`)} AS errors, bool_or(NOT fits) AS "isCut"
    FROM (${sizedPage(sql, query)}) page`;
  return {
    rows: page === undefined ? [] : parsePage(page),
    isCut: page?.isCut === true,
    stoppedAt: page?.stoppedAt ?? undefined,
  };
}

/** JSON as it is stored has no line break, and the other values have no space. */
function joined(sql: Sql, line: ReturnType<typeof shownLine>) {
  return sql`string_agg(${line}, ${'\n'}) FILTER (WHERE fits)`;
}

function parsePage({ rows, metadata, attested, errors }: FoundPage): ListedSubmission[] {
  if (rows === null) return [];
  const [ofMetadata, ofAttested, ofErrors] = [metadata, attested, errors].map((text) => text?.split('\n'));
  return rows
    .split('\n')
    .map((line, i) => parseLine(line, ofMetadata?.[i] ?? '', ofAttested?.[i] || null, ofErrors?.[i] ?? ''));
}

function parseLine(
  line: string,
  metadata: string,
  attestedMetadata: string | null,
  errors: string,
): ListedSubmission {
  const [logId, logIndex, id = '', submittedAtMs, artifactSha256 = '', state, leafSha256 = '', ...rest] =
    line.split(' ');
  const [salt, redactedAtMs, batchId, batchStatus, witnessedAtMs] = rest;
  const isRedacted = metadata.startsWith('"');
  return {
    logId: Number(logId),
    logIndex: Number(logIndex),
    id,
    schema: isRedacted ? (JSON.parse(metadata) as string) : '',
    metadata: isRedacted ? null : metadata,
    metadataState: Number(state),
    metadataErrors: errors === '' ? null : (JSON.parse(errors) as ListedSubmission['metadataErrors']),
    attestedMetadata,
    submittedAtMs: Number(submittedAtMs),
    artifactSha256,
    leafSha256,
    salt: salt || null,
    redactedAtMs: numberOrNull(redactedAtMs),
    batchId: batchId || null,
    batchStatus: numberOrNull(batchStatus),
    witnessedAtMs: numberOrNull(witnessedAtMs),
  };
}

function numberOrNull(text: string | undefined): number | null {
  return text ? Number(text) : null;
}

/** The rows of a page, and whether each fits. Sizes are known without reading TOAST tables. */
function sizedPage(sql: Sql, query: SubmissionQuery) {
  return sql`
    SELECT *, through = bytes OR through <= ${MAX_METADATA_BYTES} AS fits FROM (
      SELECT *, sum(bytes) OVER (ORDER BY log_id DESC, log_index DESC ROWS UNBOUNDED PRECEDING) AS through
      FROM (${submissionPage(sql, query)}) chosen
    ) counted
    ORDER BY log_id DESC, log_index DESC`;
}

/** What a submission is shown with, separated by spaces; nothing for NULL. */
const shownLine = (sql: Sql) => sql`
  concat(page.log_id, ' ', page.log_index, ' ', page.id, ' ', ${unixMs(sql, sql`page.submitted_at`)}, ' ',
         encode(page.artifact_sha256, 'hex'), ' ', page.metadata_state, ' ', encode(page.leaf_hash, 'hex'), ' ',
         encode(page.salt, 'hex'), ' ', ${unixMs(sql, sql`page.redacted_at`)}, ' ', page.batch_id, ' ',
         page.batch_status, ' ', ${unixMs(sql, sql`page.witnessed_at`)})`;

const chosenColumns = (sql: Sql) => sql`
  s.log_id, s.log_index, s.id, s.submitted_at, s.artifact_sha256, s.schema, s.metadata, s.metadata_state,
  s.metadata_errors, s.attested_metadata, s.salt, s.leaf_hash, s.redacted_at, b.id AS batch_id,
  b.status AS batch_status, b.witnessed_at,
  coalesce(octet_length(s.metadata), 0) + coalesce(octet_length(s.attested_metadata), 0)
    + coalesce(octet_length(s.metadata_errors), 0) AS bytes`;

/** A time as Unix milliseconds. */
export function unixMs(sql: Sql, time: ReturnType<Sql>) {
  return sql`floor(extract(epoch FROM ${time}) * 1000)::bigint`;
}

/**
 * The rows of a page. Reads the project's rows, or those of one schema, backwards by index within the stretches of each
 * log that match status and times, so it reads little more than it returns. Comparisons of whole rows leave the planner
 * one index to choose: with equalities, statistics of a large project can make it read all projects' rows for a small
 * one.
 */
function submissionPage(sql: Sql, query: SubmissionQuery) {
  const { projectId, schema, limit } = query;
  if (query.artifactSha256 !== undefined) return artifactPage(sql, query);
  const { logIds, ends } = positionsOf(query);
  const none = sql``;
  const [name, value, descending] =
    schema === undefined ? [none, none, none] : [sql`s.schema,`, sql`${schema},`, sql`s.schema DESC,`];
  return sql`
    SELECT ${chosenColumns(sql)}
    FROM unnest(${logIds}::integer[], ${ends}::bigint[]) AS l(log_id, end_index)
    CROSS JOIN LATERAL ${stretches(sql, query)} r
    CROSS JOIN LATERAL (
      SELECT * FROM submission s
      WHERE (${name} s.project_id, s.log_id, s.log_index) >= (${value} ${projectId}, l.log_id, r.first_index)
        AND (${name} s.project_id, s.log_id, s.log_index) <= (${value} ${projectId}, l.log_id, r.end_index - 1)
        ${times(sql, query)}
      ORDER BY ${descending} s.project_id DESC, s.log_id DESC, s.log_index DESC LIMIT ${mostRows(sql, limit)}
    ) s
    ${withBatch(sql)}
    ORDER BY s.log_id DESC, s.log_index DESC LIMIT ${limit}`;
}

/** The matches of `found`, in the statement that finds them: filters and rows are of one moment. */
function artifactPage(sql: Sql, { limit }: SubmissionQuery) {
  return sql`
    SELECT ${chosenColumns(sql)} FROM found f
    CROSS JOIN LATERAL (
      SELECT * FROM submission s WHERE s.log_id = f.log_id AND s.log_index = f.log_index LIMIT 1
    ) s
    ${withBatch(sql)}
    WHERE f.is_match
    ORDER BY s.log_id DESC, s.log_index DESC LIMIT ${limit}`;
}

function foundArtifact(sql: Sql, query: SubmissionQuery) {
  if (query.artifactSha256 === undefined) return sql``;
  const { logIds, ends } = positionsOf(query);
  const { projectId, artifactSha256, schema = null, status = null, limit } = query;
  const [after, before] = [query.submittedAfter ?? null, query.submittedBefore ?? null];
  return sql`
    WITH found AS MATERIALIZED (
      SELECT * FROM find_artifact(
        ${projectId}, ${artifactSha256}, ${schema}, ${status}::smallint, ${after}, ${before},
        ${logIds}::integer[], ${ends}::bigint[], ${limit}, ${MAX_CANDIDATES}))`;
}

function stoppedAt(sql: Sql, { artifactSha256 }: SubmissionQuery) {
  if (artifactSha256 === undefined) return sql`NULL::json`;
  return sql`(SELECT json_build_object('logId', log_id, 'logIndex', log_index) FROM found WHERE NOT is_match)`;
}

function positionsOf({ logIds, before }: SubmissionQuery) {
  return logsBelow(logIds, before && { logId: before.logId, end: before.logIndex });
}

/** Compared as numbers, so that the planner expects every row to match: the stretches are chosen by time. */
function times(sql: Sql, { submittedAfter, submittedBefore }: SubmissionQuery) {
  if ((submittedAfter ?? submittedBefore) === undefined) return sql``;
  return sql`AND (s.submitted_at > coalesce(${submittedAfter ?? null}::timestamptz, '-infinity')
    AND s.submitted_at < coalesce(${submittedBefore ?? null}::timestamptz, 'infinity'))::integer <> 0`;
}

function stretches(sql: Sql, { status, submittedAfter, submittedBefore }: SubmissionQuery) {
  if ((status ?? submittedAfter ?? submittedBefore) === undefined) {
    return sql`(SELECT 0::bigint AS first_index, l.end_index)`;
  }
  return sql`leaf_stretches(
    l.log_id, ${status ?? null}::smallint, ${submittedAfter ?? null}::timestamptz,
    ${submittedBefore ?? null}::timestamptz, l.end_index)`;
}
