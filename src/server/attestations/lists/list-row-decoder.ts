import { MetadataState } from '../../../../gen/attestation/v1/attestations_pb.js';
import type { Sql } from '../../database/connect.js';
import { unixMsOf } from '../../database/times.js';
import { type ShownStatement, StatementVersion, shownStatement } from '../statements/stored-statement.js';
import type { SubmissionRow } from '../submissions/submissions.js';
import {
  BATCH_TEXT,
  findBatchesOf,
  type KnownBatches,
  type ListedBatch,
  parseBatch,
} from './listed-batches.js';

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
  | 'build'
  | 'batchId'
  | 'batchStatus'
> & {
  submittedAtMs: number;
  artifactSha256: string;
  metadataErrors: { path: string; message: string }[] | null;
  /** Null if it is made of the row. */
  statement: ShownStatement | null;
  salt: string | null;
  leafSha256: string;
  redactedAtMs: number | null;
  witnessedAtMs: number | null;
};

/** The submissions `s` of which more is shown than of most: `s.salt` is null as soon as metadata is erased. */
const HAS_DETAILS = `
  metadata_state <> ${MetadataState.VALID} OR salt IS NULL OR attested_metadata IS NOT NULL
  OR metadata_errors IS NOT NULL OR redacted_at IS NOT NULL OR build IS NOT NULL
  OR statement_version <> ${StatementVersion.OF_ROW}`;

/** The JSON of the schema of a submission `s`, for those without metadata alone. */
const SCHEMA_OF = `
  SELECT to_json(coalesce(s.schema, (SELECT n.schema FROM submission_name n WHERE n.number = s.schema_number)))::text`;

/** What is shown of the stored statement of a submission `s`, and when it was erased. */
const STATEMENT_OF = `
  SELECT concat_ws(E'\\t', coalesce(t.shown, ''), coalesce(encode(timestamptz_send(t.erased_at), 'hex'), ''))
  FROM find_statement(s.log_id, s.log_index) t WHERE s.statement_version <> ${StatementVersion.OF_ROW}`;

/** The published batch of a submission `s`: the first that ends behind its index. */
const BATCH_OF = `
  SELECT CASE WHEN b.registered_at IS NOT NULL THEN ${BATCH_TEXT} END FROM batch b
  WHERE b.log_id = s.log_id AND b.tree_size > s.log_index ORDER BY b.tree_size LIMIT 1`;

/**
 * The columns of listed submissions `s`, a text for each column: 109 µs of Postgres where a line for each row takes 142.
 * Times and hashes are joined and then written as hex. JSON as it is stored has no line break and no tab, a build's name no
 * control character, and the other values have no space. Metadata is left out where `fits` is false. Reads only batches that
 * are missing from the cache, each behind its submission's place: with a mark for each cached one, a page takes 186 µs in
 * place of 152.
 *
 * @param knownEnd the text of the index below which batches are known, in the row's log
 * @param hasLogs whether the rows may be of several logs
 */
export const listedColumns = (knownEnd: string, hasLogs: boolean): string => `
  ${hasLogs ? "string_agg(log_id::text, ' ') AS logs," : ''}
  string_agg(log_index::text, ' ') AS indexes, string_agg(id, ' ') AS ids,
  encode(string_agg(timestamptz_send(submitted_at) || artifact_sha256 || leaf_hash || coalesce(salt, ''), ''), 'hex') AS bytes,
  string_agg(CASE WHEN fits THEN coalesce(metadata, (${SCHEMA_OF})) ELSE '' END, E'\\n') AS metadata,
  string_agg(concat_ws(E'\\t', id, metadata_state, (salt IS NOT NULL)::integer,
                       coalesce(encode(timestamptz_send(redacted_at), 'hex'), ''),
                       coalesce(CASE WHEN fits THEN attested_metadata END, ''),
                       coalesce(CASE WHEN fits THEN metadata_errors END, ''), coalesce(build, ''),
                       statement_version, (${STATEMENT_OF})),
             E'\\n') FILTER (WHERE ${HAS_DETAILS}) AS details,
  string_agg(concat_ws(' ', log_id, log_index, (${BATCH_OF})), E'\\n') FILTER (WHERE log_index >= ${knownEnd}) AS batches,
  count(*) FILTER (WHERE fits) AS fitting`;

/** {@link listedColumns} of a page: null without rows, and `details` if no row has any. */
export type ListedColumns = {
  /** Undefined if all are of one. */
  logs?: string | null;
  indexes: string | null;
  ids: string | null;
  bytes: string | null;
  metadata: string | null;
  details: string | null;
  batches: string | null;
  /** The rows that have their metadata, which are the first ones. */
  fitting: number;
};

/** A place in the order of lists: logs by id, submissions by index. */
export type SubmissionPosition = { logId: number; logIndex: number };

/**
 * Reads the rows of a page, and looks up those of its batches that should be known and are not. Clears the large
 * columns: what keeps the driver's row for a while would have them copied by collections, 10 % of a page's CPU.
 *
 * @param logId that of a page of one log
 */
export async function readColumns(
  sql: Sql,
  columns: ListedColumns,
  { logId, known }: { logId: number; known: KnownBatches },
): Promise<ListedSubmission[]> {
  const logs = columns.logs?.split(' ');
  const places = split(columns.indexes, ' ').map((logIndex, i) => ({
    logId: logs === undefined ? logId : Number(logs[i]),
    logIndex: Number(logIndex),
  }));
  const batches = await batchesOf(sql, places, split(columns.batches, '\n'), known);
  const rows = readRows(columns, places, batches);
  Object.assign(columns, { ids: null, bytes: null, metadata: null });
  return rows;
}

function readRows(
  columns: ListedColumns,
  places: readonly SubmissionPosition[],
  batches: readonly (ListedBatch | undefined)[],
): ListedSubmission[] {
  const bytes = columns.bytes ?? '';
  const ids = split(columns.ids, ' ');
  const metadata = split(columns.metadata, '\n');
  const details = columns.details === null ? undefined : readDetails(columns.details);
  let end = 0;
  const take = (count: number) => {
    end += 2 * count;
    return bytes.slice(end - 2 * count, end);
  };
  return places.map(({ logId, logIndex }, i) => {
    const id = ids[i] as string;
    const batch = batches[i];
    const text = metadata[i] as string;
    const isErased = text.startsWith('"');
    const more = details?.get(id) ?? NO_DETAILS;
    const submittedAtMs = unixMsOf(bytes, end);
    end += 16;
    return {
      logId,
      logIndex,
      id,
      schema: isErased ? (JSON.parse(text) as string) : '',
      metadata: isErased ? null : text,
      metadataState: more.metadataState,
      metadataErrors: more.metadataErrors,
      attestedMetadata: more.attestedMetadata,
      submittedAtMs,
      artifactSha256: take(32),
      leafSha256: take(32),
      salt: more.hasSalt ? take(32) : null,
      build: more.build,
      statement: more.statement,
      redactedAtMs: more.redactedAtMs,
      batchId: batch?.id ?? null,
      batchStatus: batch?.status ?? null,
      witnessedAtMs: batch?.witnessedAtMs ?? null,
    };
  });
}

function split(text: string | null, separator: string): string[] {
  return text === null ? [] : text.split(separator);
}

type Details = Pick<
  ListedSubmission,
  'metadataState' | 'metadataErrors' | 'attestedMetadata' | 'redactedAtMs' | 'build' | 'statement'
> & { hasSalt: boolean };

const NO_DETAILS: Details = {
  metadataState: MetadataState.VALID,
  metadataErrors: null,
  attestedMetadata: null,
  redactedAtMs: null,
  build: null,
  statement: null,
  hasSalt: true,
};

/** By the ids of those that have any. */
function readDetails(text: string): Map<string, Details> {
  return new Map(text.split('\n').map((line) => readDetailsLine(line.split('\t'))));
}

function readDetailsLine([id = '', state, hasSalt, ...texts]: string[]): [string, Details] {
  const [redactedAt = '', attested = '', errors = '', build = '', version, shown = '', erasedAt = ''] = texts;
  const details = {
    metadataState: Number(state),
    metadataErrors: errors === '' ? null : (JSON.parse(errors) as ListedSubmission['metadataErrors']),
    attestedMetadata: attested || null,
    redactedAtMs: timeOf(redactedAt),
    build: build || null,
    statement: shownStatement(Number(version), shown || null, timeOf(erasedAt)),
    hasSalt: hasSalt === '1',
  };
  return [id, details];
}

function timeOf(hex: string): number | null {
  return hex === '' ? null : unixMsOf(hex);
}

/**
 * Returns the batch of each row, and learns them. Looks up those that should be known and are not, by one statement.
 *
 * @param lines of the rows that are not before the end of the newest known batch
 */
async function batchesOf(
  sql: Sql,
  places: readonly SubmissionPosition[],
  lines: readonly string[],
  known: KnownBatches,
): Promise<(ListedBatch | undefined)[]> {
  const missing: (SubmissionPosition & { i: number })[] = [];
  let next = 0;
  let last: { text: string; batch: ListedBatch | undefined } = { text: '', batch: undefined };
  const batches = places.map(({ logId, logIndex }, i) => {
    const text = next < lines.length ? textAt(lines[next] as string, { logId, logIndex }) : undefined;
    if (text !== undefined) {
      next++;
      if (text !== last.text) last = { text, batch: text === '' ? undefined : parseBatch(text) };
      return last.batch;
    }
    const batch = known.find(logId, logIndex);
    if (batch === undefined) missing.push({ i, logId, logIndex });
    return batch;
  });
  if (missing.length > 0) {
    const found = await findBatchesOf(sql, missing);
    for (const { i, ...place } of missing) batches[i] = found.find((one) => isIn(one, place));
  }
  learn(places, batches, known);
  return batches;
}

/** The text of the batch in a line, empty without one; undefined if the line is another submission's. */
function textAt(line: string, { logId, logIndex }: SubmissionPosition): string | undefined {
  const place = `${logId} ${logIndex}`;
  if (line === place) return '';
  return line.startsWith(`${place} `) ? line.slice(place.length + 1) : undefined;
}

function isIn({ logId, firstIndex, treeSize }: ListedBatch, place: SubmissionPosition): boolean {
  return logId === place.logId && firstIndex <= place.logIndex && place.logIndex < treeSize;
}

/** Forgets the batches of a log if this database has another one than a known one: it has taken the place of another. */
function learn(
  places: readonly SubmissionPosition[],
  batches: readonly (ListedBatch | undefined)[],
  known: KnownBatches,
): void {
  for (const [i, batch] of batches.entries()) {
    if (i > 0 && batch !== undefined && batch === batches[i - 1]) continue;
    const { logId, logIndex } = places[i] as SubmissionPosition;
    const standing = known.find(logId, logIndex);
    if (standing !== undefined && batch?.id !== standing.id) known.forget(logId);
    if (batch !== undefined) known.add(batch);
  }
}
