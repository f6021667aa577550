import { SubmissionStatus } from '../../../../gen/attestation/v1/attestations_pb.js';
import type { Sql } from '../database/connect.js';
import { logsBelow, mostRows } from './list-pages.js';
import { createKnownBatches, type KnownBatches, WITNESSED } from './listed-batches.js';
import {
  type ListedColumns,
  type ListedSubmission,
  listedColumns,
  readColumns,
  type SubmissionPosition,
} from './listed-columns.js';

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

type FoundPage = ListedColumns & { stoppedAt?: SubmissionPosition | null };

/** A parameter of a statement. */
type Parameter = string | number | Date | Uint8Array | readonly number[] | null;
/** Adds a parameter to a statement, and returns how its text names it: `$1`. */
type Bind = (value: Parameter) => string;

/**
 * Lists a project's submissions, newest first, with at most {@link MAX_METADATA_BYTES} of metadata unless the first
 * alone has more. Mostly each row has little; otherwise the page is read again, and cut where its metadata does not fit.
 *
 * @param known saves looking up batches, and learns those of the page
 */
export async function listSubmissions(
  sql: Sql,
  query: SubmissionQuery,
  known = createKnownBatches(),
): Promise<SubmissionPage> {
  const read = async (isSummed: boolean) => {
    const parameters: Parameter[] = [];
    const text = pageStatement({ query, known, isSummed }, (value) => `$${parameters.push(value)}`);
    const [page] = await sql.unsafe<[FoundPage]>(text, parameters as never[], { prepare: true });
    const rows = await readColumns(sql, page, { logId: query.logIds[0] ?? 0, known });
    return { page, rows, isCut: page.fitting < rows.length };
  };
  const little = await read(false);
  const { page, rows, isCut } = little.isCut ? await read(true) : little;
  return { rows: isCut ? rows.slice(0, page.fitting) : rows, isCut, stoppedAt: page.stoppedAt ?? undefined };
}

type Wanted = { query: SubmissionQuery; known: KnownBatches; isSummed: boolean };

/**
 * The statement of a page. Sizes of metadata are known without reading TOAST tables. Summing them row by row takes
 * Postgres 50 of 195 µs: unless `isSummed`, metadata that is larger than an equal share of the page does not fit. Its text
 * is the same for each kind of filters, so that it is prepared once.
 */
function pageStatement({ query, known, isSummed }: Wanted, bind: Bind): string {
  const isOfArtifact = query.artifactSha256 !== undefined;
  const rows = isOfArtifact ? artifactRows(query, bind) : filteredRows(query, bind);
  const columns = listedColumns(knownEnd(query, known, bind), query.logIds.length > 1);
  return `
    ${isOfArtifact ? foundArtifact(query, bind) : ''}
    SELECT ${isOfArtifact ? `${STOPPED_AT} AS "stoppedAt",` : ''} ${columns}
    FROM (${isSummed ? summed(rows) : withShares(rows, mostRows(query.limit))}) s`;
}

/** Of one project, in the order of its index. */
const NEWEST_FIRST = 'project_id DESC, log_id DESC, log_index DESC';

/** Metadata fits if each of so many rows could have as much. */
function withShares(rows: string, count: number): string {
  return `SELECT *, bytes <= ${Math.floor(MAX_METADATA_BYTES / count)} AS fits FROM (${rows}) r`;
}

/** The metadata of the first row fits, and that of others as long as there is room. */
function summed(rows: string): string {
  return `
    SELECT *, through <= greatest(bytes, ${MAX_METADATA_BYTES}) AS fits
    FROM (
      SELECT *, sum(bytes) OVER (ORDER BY ${NEWEST_FIRST} ROWS UNBOUNDED PRECEDING) AS through FROM (${rows}) r
      ORDER BY ${NEWEST_FIRST}
    ) page`;
}

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
function filteredRows(query: SubmissionQuery, bind: Bind): string {
  const { schema, limit } = query;
  const project = bind(query.projectId);
  const [name, value, order] =
    schema === undefined
      ? ['', '', NEWEST_FIRST]
      : ['s.schema,', `${bind(schema)},`, `schema DESC, ${NEWEST_FIRST}`];
  return `
    SELECT s.*
    FROM (${logsOf(query, bind)}) l
    CROSS JOIN LATERAL ${stretches(query, bind)} r
    CROSS JOIN LATERAL (
      SELECT ${CHOSEN_COLUMNS} FROM submission s
      WHERE (${name} s.project_id, s.log_id, s.log_index) >= (${value} ${project}, l.log_id, r.first_index)
        AND (${name} s.project_id, s.log_id, s.log_index) <= (${value} ${project}, l.log_id, r.end_index - 1)
        ${times(query, bind)}
      ORDER BY ${order} LIMIT ${mostRows(limit)}
    ) s
    ORDER BY ${order} LIMIT ${bind(limit)}`;
}

/** The logs of a page, and its end in each. */
function logsOf(query: SubmissionQuery, bind: Bind): string {
  const { logIds, ends } = positionsOf(query);
  const texts = logIds.map(
    (logId, i) => `SELECT ${bind(logId)}::integer AS log_id, ${bind(ends[i] as number)}::bigint AS end_index`,
  );
  return texts.join(' UNION ALL ') || 'SELECT 0 AS log_id, 0::bigint AS end_index WHERE false';
}

/**
 * The end of the newest batch that is known in a row's log, if this database has it: up to there the page needs no look-up
 * of batches, which take Postgres 2 µs a row. Other statuses than witnessed are read together with the rows: they may
 * change in between.
 */
function knownEnd(query: SubmissionQuery, known: KnownBatches, bind: Bind): string {
  const { logIds } = positionsOf(query);
  const mayKnow = query.status === undefined || query.status === WITNESSED;
  if (!mayKnow || query.artifactSha256 !== undefined || logIds.length === 0) return '0';
  const ends = logIds.map(
    (logId) => `
      WHEN ${bind(logId)}::integer
      THEN coalesce((SELECT tree_size FROM batch WHERE id = ${bind(known.newest(logId)?.id ?? '')}), 0)`,
  );
  return `CASE log_id ${ends.join('')} END`;
}

/** The matches of `found`, in the statement that finds them: filters and rows are of one moment. */
function artifactRows({ limit }: SubmissionQuery, bind: Bind): string {
  return `
    SELECT s.* FROM found f
    CROSS JOIN LATERAL (
      SELECT ${CHOSEN_COLUMNS} FROM submission s WHERE s.log_id = f.log_id AND s.log_index = f.log_index LIMIT 1
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

/** Functions for what is filtered only: `leaf_stretches` takes about 40 µs more. */
function stretches({ status, submittedAfter, submittedBefore }: SubmissionQuery, bind: Bind): string {
  const hasTimes = (submittedAfter ?? submittedBefore) !== undefined;
  const time = (date: Date | undefined) => `${bind(date ?? null)}::timestamptz`;
  if (status === undefined && !hasTimes) return '(SELECT 0::bigint AS first_index, l.end_index)';
  if (status === undefined)
    return `time_stretches(l.log_id, ${time(submittedAfter)}, ${time(submittedBefore)}, l.end_index)`;
  const ofStatus = `${bind(status)}::smallint`;
  // What is queued may be in no batch.
  if (!hasTimes && status !== SubmissionStatus.QUEUED)
    return `status_stretches(l.log_id, ${ofStatus}, l.end_index)`;
  return `leaf_stretches(l.log_id, ${ofStatus}, ${time(submittedAfter)}, ${time(submittedBefore)}, l.end_index)`;
}
