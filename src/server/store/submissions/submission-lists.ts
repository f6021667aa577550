import type { Sql } from '../database/connect.js';
import { logsBelow, mostRows } from './list-pages.js';
import { type SubmissionRow, WITH_BATCH } from './submissions.js';

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

/** `lines`: a line of text for each submission, see {@link LINE}. */
type FoundPage = { lines: string | null; isCut: boolean | null; stoppedAt?: SubmissionPosition | null };

/** A parameter of a statement. */
type Parameter = string | number | Date | Uint8Array | readonly number[] | null;
/** Adds a parameter to a statement, and returns how its text names it: `$1`. */
type Bind = (value: Parameter) => string;

/**
 * Lists a project's submissions, newest first, with at most {@link MAX_METADATA_BYTES} of metadata unless the first
 * alone has more. A page comes as lines of text: as JSON it takes Postgres 40 to 190 µs longer, and has to be parsed.
 */
export async function listSubmissions(sql: Sql, query: SubmissionQuery): Promise<SubmissionPage> {
  const parameters: Parameter[] = [];
  const text = pageStatement(query, (value) => `$${parameters.push(value)}`);
  const [page] = await sql.unsafe<FoundPage[]>(text, parameters as never[], { prepare: true });
  return {
    rows: page?.lines?.split('\n').map(parseLine) ?? [],
    isCut: page?.isCut === true,
    stoppedAt: page?.stoppedAt ?? undefined,
  };
}

/**
 * The statement of a page. Sizes of metadata are known without reading TOAST tables. The text of the statement is the same
 * for each kind of filters, so that it is prepared once; the driver's fragments, of which it had 24, took 30 µs.
 */
function pageStatement(query: SubmissionQuery, bind: Bind): string {
  const isOfArtifact = query.artifactSha256 !== undefined;
  return `
    ${isOfArtifact ? foundArtifact(query, bind) : ''}
    SELECT ${isOfArtifact ? `${STOPPED_AT} AS "stoppedAt",` : ''}
           string_agg(${LINE}, E'\\n') FILTER (WHERE ${FITS}) AS lines, bool_or(NOT ${FITS}) AS "isCut"
    FROM (
      SELECT *, sum(bytes) OVER (ORDER BY log_id DESC, log_index DESC ROWS UNBOUNDED PRECEDING) AS through
      FROM (
        SELECT s.*, b.id AS batch_id, b.status AS batch_status, b.witnessed_at
        FROM (${isOfArtifact ? artifactRows(query, bind) : filteredRows(query, bind)}) s
        ${WITH_BATCH}
      ) chosen
      ORDER BY log_id DESC, log_index DESC
    ) page`;
}

/** Whether a submission is on the page: the first, or one whose metadata there is room for. */
const FITS = `through <= greatest(bytes, ${MAX_METADATA_BYTES})`;

/** Times are exact in the bytes that Postgres sends of them: as a number of Unix time each would take 0.5 µs longer. */
const LINE = `
  concat(log_id, ' ', log_index, ' ', id, ' ', metadata_state, ' ',
         encode(timestamptz_send(submitted_at) || artifact_sha256 || leaf_hash || coalesce(salt, ''), 'hex'), ' ',
         encode(timestamptz_send(redacted_at), 'hex'), ' ', batch_id, ' ', batch_status, ' ',
         encode(timestamptz_send(witnessed_at), 'hex'), E'\\t', coalesce(metadata, to_json(schema)::text), E'\\t',
         attested_metadata, E'\\t', metadata_errors)`;

/** JSON as it is stored has no line break and no tab, and the other values have no space. */
function parseLine(line: string): ListedSubmission {
  const [row = '', metadata = '', attestedMetadata = '', errors = ''] = line.split('\t');
  const [
    logId,
    logIndex,
    id = '',
    state,
    bytes = '',
    redactedAt = '',
    batchId = '',
    status,
    witnessedAt = '',
  ] = row.split(' ');
  const isRedacted = metadata.startsWith('"');
  return {
    logId: Number(logId),
    logIndex: Number(logIndex),
    id,
    schema: isRedacted ? (JSON.parse(metadata) as string) : '',
    metadata: isRedacted ? null : metadata,
    metadataState: Number(state),
    metadataErrors: errors === '' ? null : (JSON.parse(errors) as ListedSubmission['metadataErrors']),
    attestedMetadata: attestedMetadata || null,
    submittedAtMs: unixMsOf(bytes),
    artifactSha256: bytes.slice(16, 80),
    leafSha256: bytes.slice(80, 144),
    salt: bytes.slice(144) || null,
    redactedAtMs: redactedAt === '' ? null : unixMsOf(redactedAt),
    batchId: batchId || null,
    batchStatus: status ? Number(status) : null,
    witnessedAtMs: witnessedAt === '' ? null : unixMsOf(witnessedAt),
  };
}

const POSTGRES_EPOCH_MS = Date.UTC(2000, 0, 1);

/** The Unix milliseconds of a time as Postgres sends it: a 64-bit number of microseconds since 2000, in hex. */
function unixMsOf(hex: string): number {
  const high = Number.parseInt(hex.slice(0, 8), 16) | 0;
  const micros = high * 2 ** 32 + Number.parseInt(hex.slice(8, 16), 16);
  return Math.floor(micros / 1000) + POSTGRES_EPOCH_MS;
}

/** A time as Unix milliseconds. */
export function unixMs(sql: Sql, time: ReturnType<Sql>) {
  return sql`floor(extract(epoch FROM ${time}) * 1000)::bigint`;
}

const CHOSEN_COLUMNS = `
  s.log_id, s.log_index, s.id, s.submitted_at, s.artifact_sha256, s.schema, s.metadata, s.metadata_state,
  s.metadata_errors, s.attested_metadata, s.salt, s.leaf_hash, s.redacted_at,
  coalesce(octet_length(s.metadata), 0) + coalesce(octet_length(s.attested_metadata), 0)
    + coalesce(octet_length(s.metadata_errors), 0) AS bytes`;

/**
 * The rows of a page. Reads the project's rows, or those of one schema, backwards by index within the stretches of each
 * log that match status and times, so it reads little more than it returns. Comparisons of whole rows leave the planner
 * one index to choose: with equalities, statistics of a large project can make it read all projects' rows for a small
 * one.
 */
function filteredRows(query: SubmissionQuery, bind: Bind): string {
  const { schema, limit } = query;
  const { logIds, ends } = positionsOf(query);
  const project = bind(query.projectId);
  const [name, value, descending] =
    schema === undefined ? ['', '', ''] : ['s.schema,', `${bind(schema)},`, 's.schema DESC,'];
  return `
    SELECT ${CHOSEN_COLUMNS}
    FROM unnest(${bind(logIds)}::integer[], ${bind(ends)}::bigint[]) AS l(log_id, end_index)
    CROSS JOIN LATERAL ${stretches(query, bind)} r
    CROSS JOIN LATERAL (
      SELECT * FROM submission s
      WHERE (${name} s.project_id, s.log_id, s.log_index) >= (${value} ${project}, l.log_id, r.first_index)
        AND (${name} s.project_id, s.log_id, s.log_index) <= (${value} ${project}, l.log_id, r.end_index - 1)
        ${times(query, bind)}
      ORDER BY ${descending} s.project_id DESC, s.log_id DESC, s.log_index DESC LIMIT ${mostRows(limit)}
    ) s
    ORDER BY s.log_id DESC, s.log_index DESC LIMIT ${bind(limit)}`;
}

/** The matches of `found`, in the statement that finds them: filters and rows are of one moment. */
function artifactRows({ limit }: SubmissionQuery, bind: Bind): string {
  return `
    SELECT ${CHOSEN_COLUMNS} FROM found f
    CROSS JOIN LATERAL (
      SELECT * FROM submission s WHERE s.log_id = f.log_id AND s.log_index = f.log_index LIMIT 1
    ) s
    WHERE f.is_match
    ORDER BY s.log_id DESC, s.log_index DESC LIMIT ${bind(limit)}`;
}

function foundArtifact(query: SubmissionQuery, bind: Bind): string {
  const { logIds, ends } = positionsOf(query);
  const { projectId, artifactSha256 = null, schema = null, status = null, limit } = query;
  const [after, before] = [query.submittedAfter ?? null, query.submittedBefore ?? null];
  return `
    WITH found AS MATERIALIZED (
      SELECT * FROM find_artifact(
        ${bind(projectId)}, ${bind(artifactSha256)}, ${bind(schema)}, ${bind(status)}::smallint, ${bind(after)},
        ${bind(before)}, ${bind(logIds)}::integer[], ${bind(ends)}::bigint[], ${bind(limit)}, ${bind(MAX_CANDIDATES)}))`;
}

const STOPPED_AT =
  "(SELECT json_build_object('logId', log_id, 'logIndex', log_index) FROM found WHERE NOT is_match)";

function positionsOf({ logIds, before }: SubmissionQuery) {
  return logsBelow(logIds, before && { logId: before.logId, end: before.logIndex });
}

/** Compared as numbers, so that the planner expects every row to match: the stretches are chosen by time. */
function times({ submittedAfter, submittedBefore }: SubmissionQuery, bind: Bind): string {
  if ((submittedAfter ?? submittedBefore) === undefined) return '';
  return `AND (s.submitted_at > coalesce(${bind(submittedAfter ?? null)}::timestamptz, '-infinity')
    AND s.submitted_at < coalesce(${bind(submittedBefore ?? null)}::timestamptz, 'infinity'))::integer <> 0`;
}

function stretches({ status, submittedAfter, submittedBefore }: SubmissionQuery, bind: Bind): string {
  if ((status ?? submittedAfter ?? submittedBefore) === undefined) {
    return '(SELECT 0::bigint AS first_index, l.end_index)';
  }
  return `leaf_stretches(
    l.log_id, ${bind(status ?? null)}::smallint, ${bind(submittedAfter ?? null)}::timestamptz,
    ${bind(submittedBefore ?? null)}::timestamptz, l.end_index)`;
}
