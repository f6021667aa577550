import type { Sql } from '../database/connect.js';
import { logsBelow, mostRows } from './list-pages.js';
import { BATCH_TEXT, createKnownBatches, type KnownBatches, WITNESSED } from './listed-batches.js';
import { KNOWN, LINE, type ListedSubmission, readLines } from './listed-lines.js';

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
 *
 * @param known saves looking up batches, and learns those of the page
 */
export async function listSubmissions(
  sql: Sql,
  query: SubmissionQuery,
  known = createKnownBatches(),
): Promise<SubmissionPage> {
  const parameters: Parameter[] = [];
  const text = pageStatement(query, known, (value) => `$${parameters.push(value)}`);
  const [page] = await sql.unsafe<FoundPage[]>(text, parameters as never[], { prepare: true });
  return {
    rows: await readLines(sql, page?.lines ?? '', known),
    isCut: page?.isCut === true,
    stoppedAt: page?.stoppedAt ?? undefined,
  };
}

/**
 * The statement of a page. Sizes of metadata are known without reading TOAST tables. Its text is the same for each kind of
 * filters, so that it is prepared once.
 */
function pageStatement(query: SubmissionQuery, known: KnownBatches, bind: Bind): string {
  const isOfArtifact = query.artifactSha256 !== undefined;
  return `
    ${isOfArtifact ? foundArtifact(query, bind) : ''}
    SELECT ${isOfArtifact ? `${STOPPED_AT} AS "stoppedAt",` : ''}
           string_agg(${LINE}, E'\\n') FILTER (WHERE ${FITS}) AS lines, bool_or(NOT ${FITS}) AS "isCut"
    FROM (
      SELECT *, sum(bytes) OVER (ORDER BY ${NEWEST_FIRST} ROWS UNBOUNDED PRECEDING) AS through
      FROM (
        SELECT s.*, CASE WHEN s.log_index < s.known_end THEN '${KNOWN}' WHEN b.id IS NULL THEN '' ELSE ${BATCH_TEXT} END
                 AS batch
        FROM (${isOfArtifact ? artifactRows(query, bind) : filteredRows(query, known, bind)}) s
        LEFT JOIN LATERAL (
          SELECT * FROM batch b
          WHERE b.log_id = s.log_id AND b.tree_size > s.log_index AND s.log_index >= s.known_end
          ORDER BY b.tree_size LIMIT 1
        ) b ON b.registered_at IS NOT NULL
      ) chosen
      ORDER BY ${NEWEST_FIRST}
    ) page`;
}

/** Of one project, in the order of its index. */
const NEWEST_FIRST = 'project_id DESC, log_id DESC, log_index DESC';

/** Whether a submission is on the page: the first, or one whose metadata there is room for. */
const FITS = `through <= greatest(bytes, ${MAX_METADATA_BYTES})`;

const CHOSEN_COLUMNS = `
  s.project_id, s.log_id, s.log_index, s.id, s.submitted_at, s.artifact_sha256, s.schema, s.metadata, s.metadata_state,
  s.metadata_errors, s.attested_metadata, s.salt, s.leaf_hash, s.redacted_at,
  coalesce(octet_length(s.metadata), 0) + coalesce(octet_length(s.attested_metadata), 0)
    + coalesce(octet_length(s.metadata_errors), 0) AS bytes`;

/**
 * The rows of a page. Reads the project's rows, or those of one schema, backwards by index within the stretches of each
 * log that match status and times, so it reads little more than it returns. Comparisons of whole rows leave the planner
 * one index to choose: with equalities, statistics of a large project can make it read all projects' rows for a small
 * one.
 */
function filteredRows(query: SubmissionQuery, known: KnownBatches, bind: Bind): string {
  const { schema, limit } = query;
  const project = bind(query.projectId);
  const [name, value, order] =
    schema === undefined
      ? ['', '', NEWEST_FIRST]
      : ['s.schema,', `${bind(schema)},`, `schema DESC, ${NEWEST_FIRST}`];
  return `
    SELECT ${CHOSEN_COLUMNS}, l.known_end
    FROM (${logsOf(query, known, bind)}) l
    CROSS JOIN LATERAL ${stretches(query, bind)} r
    CROSS JOIN LATERAL (
      SELECT * FROM submission s
      WHERE (${name} s.project_id, s.log_id, s.log_index) >= (${value} ${project}, l.log_id, r.first_index)
        AND (${name} s.project_id, s.log_id, s.log_index) <= (${value} ${project}, l.log_id, r.end_index - 1)
        ${times(query, bind)}
      ORDER BY ${order} LIMIT ${mostRows(limit)}
    ) s
    ORDER BY ${order} LIMIT ${bind(limit)}`;
}

/**
 * The logs of a page, the end of the page in each, and the end of the newest batch that is known there, if this database
 * has it: up to there the page needs no look-up of batches, which take Postgres 170 of 480 µs. Other statuses than
 * witnessed are read together with the rows: they may change in between.
 */
function logsOf(query: SubmissionQuery, known: KnownBatches, bind: Bind): string {
  const { logIds, ends } = positionsOf(query);
  const mayKnow = query.status === undefined || query.status === WITNESSED;
  const texts = logIds.map((logId, i) => {
    const newest = mayKnow ? known.newest(logId) : undefined;
    return `
      SELECT ${bind(logId)}::integer AS log_id, ${bind(ends[i] as number)}::bigint AS end_index,
             coalesce((SELECT tree_size FROM batch WHERE id = ${bind(newest?.id ?? '')}), 0) AS known_end`;
  });
  return texts.length > 0
    ? texts.join(' UNION ALL ')
    : 'SELECT 0 AS log_id, 0::bigint AS end_index, 0::bigint AS known_end WHERE false';
}

/** The matches of `found`, in the statement that finds them: filters and rows are of one moment. */
function artifactRows({ limit }: SubmissionQuery, bind: Bind): string {
  return `
    SELECT ${CHOSEN_COLUMNS}, 0::bigint AS known_end FROM found f
    CROSS JOIN LATERAL (
      SELECT * FROM submission s WHERE s.log_id = f.log_id AND s.log_index = f.log_index LIMIT 1
    ) s
    WHERE f.is_match
    ORDER BY ${NEWEST_FIRST} LIMIT ${bind(limit)}`;
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
