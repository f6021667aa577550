import { SubmissionStatus } from '../../../../gen/attestation/v1/attestations_pb.js';
import { logsBelow, mostRows } from '../../log/store/list-pages.js';
import { BLOCK, leavesInBlocks } from '../submissions/leaf-blocks.js';
import { listedColumns, type SubmissionPosition } from './list-row-decoder.js';
import { type KnownBatches, WITNESSED } from './listed-batches.js';

/** A query of a project's submissions; `status` is a proto SubmissionStatus number. Times are exclusive. */
export type SubmissionQuery = {
  projectId: string;
  logIds: readonly number[];
  artifactSha256?: Uint8Array | undefined;
  schema: string | undefined;
  build?: string | undefined;
  status: number | undefined;
  submittedAfter: Date | undefined;
  submittedBefore: Date | undefined;
  before: SubmissionPosition | undefined;
  limit: number;
};

/** The most bytes of metadata in a page, with errors and metadata attested before a correction. */
const MAX_METADATA_BYTES = 512 * 1024;

/**
 * How many submissions a page looks at that may be of an artifact: 10 to 20 ms of Postgres if they are in memory. It
 * needs as many only for one that is among the project's newest, not indexed yet, or submitted again and again.
 */
const MAX_CANDIDATES = 10_000;

/** A parameter of a statement. */
type Parameter = string | number | Date | Uint8Array | readonly number[] | null;
/** The sources of the parameters of a page's statement. */
type Wanted = { query: SubmissionQuery; positions: Positions; known: KnownBatches; from: number };
/** The logs of the rest of a list, and its end in each. */
type Positions = ReturnType<typeof logsBelow>;
type ReadParameter = (wanted: Wanted) => Parameter;
/** Adds a parameter to a statement, and returns how its text names it: `$1`. */
type Bind = (read: ReadParameter) => string;
/** A text, and its parameters in their order. */
type Statement = { text: string; parameters: ReadParameter[] };

/** Of each kind of page. With its text made for every page, one takes the process 73 µs without HTTP, so 63 (64 callers). */
const statements = new Map<string, Statement>();

/**
 * The text and the parameters of the statement that reads a page. Sizes of metadata are known without reading TOAST
 * tables. Summing them row by row takes Postgres 50 of 195 µs: unless `isSummed`, metadata that is larger than an equal
 * share of the page does not fit.
 *
 * @param known up to the newest batch of these the page needs no look-up of batches
 * @param from the least index of its leaves, unless it is of an artifact
 */
export function pageStatement(
  query: SubmissionQuery,
  known: KnownBatches,
  isSummed: boolean,
  from: number,
): { text: string; parameters: Parameter[] } {
  const { logIds, before } = query;
  const positions = logsBelow(logIds, before && { logId: before.logId, end: before.logIndex });
  const wanted = { query, positions, known, from };
  const kind = kindOf(wanted, isSummed);
  const { text, parameters } = statements.get(kind) ?? makeStatement(wanted, isSummed);
  statements.set(kind, { text, parameters });
  return { text, parameters: parameters.map((read) => read(wanted)) };
}

/** All that the text of a page's statement depends on. */
function kindOf({ query, positions }: Wanted, isSummed: boolean): string {
  const { artifactSha256, schema, build, status, limit, logIds } = query;
  const isOf = [artifactSha256, schema, build].map((value) => value !== undefined);
  const has = [...isOf, hasTimes(query), isSummed];
  return `${has} ${status} ${mostRows(limit)} ${logIds.length > 1} ${positions.logIds.length}`;
}

function makeStatement({ query, positions }: Wanted, isSummed: boolean): Statement {
  const parameters: Statement['parameters'] = [];
  const bind: Bind = (read) => `$${parameters.push(read)}`;
  const isOfArtifact = query.artifactSha256 !== undefined;
  const rows = isOfArtifact ? artifactRows(bind) : filteredRows(query, positions, bind);
  const columns = listedColumns(knownEnd(query, positions, bind), query.logIds.length > 1);
  const text = `
    ${isOfArtifact ? foundArtifact(bind) : ''}
    SELECT ${isOfArtifact ? `${STOPPED_AT} AS "stoppedAt",` : ''} ${columns}
    FROM (${isSummed ? summed(rows) : withShares(rows, mostRows(query.limit))}) s`;
  return { text, parameters };
}

const NEWEST_FIRST = 'log_id DESC, log_index DESC';

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
  s.log_id, s.log_index, s.id, s.submitted_at, s.artifact_sha256, s.schema, s.schema_number, s.metadata, s.metadata_state,
  s.metadata_errors, s.attested_metadata, s.salt, s.leaf_hash, s.redacted_at, s.build, s.statement_version,
  coalesce(octet_length(s.metadata), 0) + coalesce(octet_length(s.attested_metadata), 0)
    + coalesce(octet_length(s.metadata_errors), 0) AS bytes`;

/**
 * The rows of a page. Reads the project's rows, or those of one schema, build, or both, backwards by index within the
 * stretches of each log that match status and times, so it reads little more than it returns. Comparisons of whole rows
 * leave the planner one index to choose: with equalities, statistics of a large project can make it read all projects'
 * rows for a small one.
 */
function filteredRows(query: SubmissionQuery, positions: Positions, bind: Bind): string {
  const { limit } = query;
  const from = `${bind((wanted) => wanted.from)}::bigint`;
  const stretch = { logId: 'l.log_id', first: `greatest(r.first_index, ${from})`, end: 'r.end_index' };
  const { within, order } = inBlocks(query, stretch, bind);
  return `
    SELECT s.*
    FROM (${logsOf(positions, bind)}) l
    CROSS JOIN LATERAL ${stretches(query, bind)} r
    CROSS JOIN LATERAL (
      SELECT ${CHOSEN_COLUMNS} FROM submission s
      WHERE ${within} ${times(query, bind)}
      ORDER BY ${order} LIMIT ${mostRows(limit) + BLOCK - 1}
    ) s
    ORDER BY ${NEWEST_FIRST} LIMIT ${bind((wanted) => wanted.query.limit)}`;
}

/** What is read of an index: the rows of a stretch `r` of a log `l`, in its order. */
type Stretch = { logId: string; first: string; end: string };
type IndexRange = { within: string; order: string };

function inBlocks(query: SubmissionQuery, stretch: Stretch, bind: Bind): IndexRange {
  const nameOf = (name: 'schema' | 'build') =>
    query[name] === undefined ? undefined : `${bind((wanted) => wanted.query[name] ?? null)}::text`;
  const project = `${bind((wanted) => wanted.query.projectId)}::text`;
  const names = { project, schema: nameOf('schema'), build: nameOf('build') };
  const { within, order } = leavesInBlocks({ names, ...stretch });
  return { within, order: order.map((column) => `${column} DESC`).join(', ') };
}

/** The logs of a page, and its end in each. */
function logsOf({ logIds }: Positions, bind: Bind): string {
  const texts = logIds.map((_, i) => {
    const logId = bind(({ positions }) => positions.logIds[i] as number);
    return `SELECT ${logId}::integer AS log_id, ${bind(({ positions }) => positions.ends[i] as number)}::bigint AS end_index`;
  });
  return texts.join(' UNION ALL ') || 'SELECT 0 AS log_id, 0::bigint AS end_index WHERE false';
}

/**
 * The end of the newest batch that is known in a row's log, if this database has it: up to there the page needs no look-up
 * of batches, which take Postgres 2 µs a row. Other statuses than witnessed are read together with the rows: they may
 * change in between.
 */
function knownEnd(query: SubmissionQuery, { logIds }: Positions, bind: Bind): string {
  const mayKnow = query.status === undefined || query.status === WITNESSED;
  if (!mayKnow || query.artifactSha256 !== undefined || logIds.length === 0) return '0';
  const ends = logIds.map((_, i) => {
    const logId = ({ positions }: Wanted) => positions.logIds[i] as number;
    const newest = bind((wanted) => wanted.known.newest(logId(wanted))?.id ?? '');
    return `
      WHEN ${bind(logId)}::integer THEN coalesce((SELECT tree_size FROM batch WHERE id = ${newest}), 0)`;
  });
  return `CASE log_id ${ends.join('')} END`;
}

/** The matches of `found`, in the statement that finds them: filters and rows are of one moment. */
function artifactRows(bind: Bind): string {
  return `
    SELECT s.* FROM found f
    CROSS JOIN LATERAL (
      SELECT ${CHOSEN_COLUMNS} FROM submission s WHERE s.log_id = f.log_id AND s.log_index = f.log_index LIMIT 1
    ) s
    WHERE f.is_match
    ORDER BY ${NEWEST_FIRST} LIMIT ${bind(({ query }) => query.limit)}`;
}

function foundArtifact(bind: Bind): string {
  const ofQuery = (name: 'projectId' | 'artifactSha256' | 'schema' | 'status' | 'limit' | 'build') =>
    bind(({ query }) => query[name] ?? null);
  const [after, before] = [bindAfter(bind), bindBefore(bind)];
  return `
    WITH found AS MATERIALIZED (
      SELECT * FROM find_artifact(
        ${ofQuery('projectId')}, ${ofQuery('artifactSha256')}, ${ofQuery('schema')}, ${ofQuery('status')}::smallint, ${after},
        ${before}, ${bind(({ positions }) => positions.logIds)}::integer[], ${bind(({ positions }) => positions.ends)}::bigint[],
        ${ofQuery('limit')}, ${bind(() => MAX_CANDIDATES)}, ${ofQuery('build')}))`;
}

const STOPPED_AT =
  "(SELECT json_build_object('logId', log_id, 'logIndex', log_index) FROM found WHERE NOT is_match)";

/** Compared as numbers, so that the planner expects every row to match: the stretches are chosen by time. */
function times(query: SubmissionQuery, bind: Bind): string {
  if (!hasTimes(query)) return '';
  return `AND (s.submitted_at > coalesce(${bindAfter(bind)}, '-infinity')
    AND s.submitted_at < coalesce(${bindBefore(bind)}, 'infinity'))::integer <> 0`;
}

function hasTimes({ submittedAfter, submittedBefore }: SubmissionQuery): boolean {
  return (submittedAfter ?? submittedBefore) !== undefined;
}

function bindAfter(bind: Bind): string {
  return `${bind(({ query }) => query.submittedAfter ?? null)}::timestamptz`;
}

function bindBefore(bind: Bind): string {
  return `${bind(({ query }) => query.submittedBefore ?? null)}::timestamptz`;
}

/** Functions for what is filtered only: `leaf_stretches` takes about 40 µs more. */
function stretches(query: SubmissionQuery, bind: Bind): string {
  const { status } = query;
  if (status === undefined && !hasTimes(query)) return '(SELECT 0::bigint AS first_index, l.end_index)';
  if (status === undefined)
    return `time_stretches(l.log_id, ${bindAfter(bind)}, ${bindBefore(bind)}, l.end_index)`;
  const ofStatus = `${bind((wanted) => wanted.query.status ?? null)}::smallint`;
  // A queued submission may be in no batch.
  if (!hasTimes(query) && status !== SubmissionStatus.QUEUED)
    return `status_stretches(l.log_id, ${ofStatus}, l.end_index)`;
  return `leaf_stretches(l.log_id, ${ofStatus}, ${bindAfter(bind)}, ${bindBefore(bind)}, l.end_index)`;
}
