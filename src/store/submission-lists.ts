import type { JsonObject } from '@bufbuild/protobuf';
import type { Sql } from './connect.js';
import { logsBelow, mostRows } from './list-pages.js';
import { type SubmissionRow, withBatch } from './submissions.js';

/** A place in the order of lists: logs by id, submissions by index. */
export type SubmissionPosition = { logId: number; logIndex: number };

/** Which submissions of a project to list; `status` is a proto SubmissionStatus number. Times are exclusive. */
export type SubmissionQuery = {
  projectId: string;
  logIds: readonly number[];
  schema: string | undefined;
  status: number | undefined;
  submittedAfter: Date | undefined;
  submittedBefore: Date | undefined;
  before: SubmissionPosition | undefined;
  limit: number;
};

/** What a list says of a submission, as JSON spells it: hashes in lower-case hex, times in Unix milliseconds. */
export type ListedSubmission = Pick<
  SubmissionRow,
  'logId' | 'logIndex' | 'id' | 'schema' | 'metadataState' | 'batchId' | 'batchStatus'
> & {
  submittedAtMs: number;
  artifactSha256: string;
  metadata: JsonObject | null;
  metadataErrors: { path: string; message: string }[] | null;
  attestedMetadata: JsonObject | null;
  salt: string | null;
  leafSha256: string;
  redactedAtMs: number | null;
  witnessedAtMs: number | null;
};

/**
 * The project's submissions that the query asks for, newest first. They come as one JSON text, which takes a third of
 * the time that a page of rows takes the driver.
 */
export async function listSubmissions(sql: Sql, query: SubmissionQuery): Promise<ListedSubmission[]> {
  const [page] = await sql<{ rows: ListedSubmission[] | null }[]>`
    SELECT json_agg(page) AS rows FROM (${submissionPage(sql, query)}) page`;
  return page?.rows ?? [];
}

const listedColumns = (sql: Sql) => sql`
  s.log_id AS "logId", s.log_index AS "logIndex", s.id, ${unixMs(sql, sql`s.submitted_at`)} AS "submittedAtMs",
  encode(s.artifact_sha256, 'hex') AS "artifactSha256", s.schema, s.metadata::json,
  s.metadata_state AS "metadataState", s.metadata_errors::json AS "metadataErrors",
  s.attested_metadata::json AS "attestedMetadata", encode(s.salt, 'hex') AS salt,
  encode(s.leaf_hash, 'hex') AS "leafSha256", ${unixMs(sql, sql`s.redacted_at`)} AS "redactedAtMs",
  b.id AS "batchId", b.status AS "batchStatus", ${unixMs(sql, sql`b.witnessed_at`)} AS "witnessedAtMs"`;

function unixMs(sql: Sql, time: ReturnType<Sql>) {
  return sql`floor(extract(epoch FROM ${time}) * 1000)::bigint`;
}

/**
 * The rows of a page. It reads the project's rows, or those of one schema, backwards by index within the stretches of
 * each log that the status and the times leave, so that it reads little more than it returns. Comparisons of whole
 * rows leave the planner one index to choose: with equalities, statistics of a large project can have it read
 * everybody's rows for a small one.
 */
function submissionPage(sql: Sql, query: SubmissionQuery) {
  const { projectId, schema, limit } = query;
  const { logIds, ends } = logsBelow(
    query.logIds,
    query.before && { logId: query.before.logId, end: query.before.logIndex },
  );
  const none = sql``;
  const [name, value, descending] =
    schema === undefined ? [none, none, none] : [sql`s.schema,`, sql`${schema},`, sql`s.schema DESC,`];
  return sql`
    SELECT ${listedColumns(sql)}
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

/** As a number, so that the planner expects the times of every row to be right: the stretches are chosen by them. */
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
