import type { Sql } from '../database/connect.js';
import {
  findBatchesOf,
  type KnownBatches,
  type ListedBatch,
  parseBatch,
  unixMsOf,
} from './listed-batches.js';
import type { SubmissionRow } from './submissions.js';

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

/** In place of a batch before the end of the newest known one, which is published then. */
export const KNOWN = '-';

/** What a submission is shown with. JSON as it is stored has no line break and no tab, and the other values have neither. */
export const LINE = `
  concat_ws(E'\\t', log_id, log_index, id, metadata_state,
            encode(timestamptz_send(submitted_at) || artifact_sha256 || leaf_hash || coalesce(salt, ''), 'hex'),
            coalesce(encode(timestamptz_send(redacted_at), 'hex'), ''), batch,
            coalesce(metadata, to_json(schema)::text), coalesce(attested_metadata, ''), coalesce(metadata_errors, ''))`;

/** The values of a line, in the order of {@link LINE}. */
type Line = readonly string[];
const BATCH_PLACE = 6;

/** Reads the lines of a page, and looks up those of its batches that should be known and are not. */
export async function readLines(sql: Sql, text: string, known: KnownBatches): Promise<ListedSubmission[]> {
  const lines = text === '' ? [] : text.split('\n').map((line) => line.split('\t'));
  const batches = await batchesOf(sql, lines, known);
  return lines.map((line, i) => parseLine(line, batches[i]));
}

/** Returns the batch of each line, and learns them. Looks up those that should be known and are not, by one statement. */
async function batchesOf(
  sql: Sql,
  lines: readonly Line[],
  known: KnownBatches,
): Promise<(ListedBatch | undefined)[]> {
  let last: { text: string; batch: ListedBatch } | undefined;
  const batches = lines.map((line) => {
    const text = line[BATCH_PLACE] as string;
    if (text === '') return undefined;
    if (text === KNOWN) return known.find(Number(line[0]), Number(line[1]));
    if (text !== last?.text) last = { text, batch: parseBatch(text) };
    return last.batch;
  });
  const missing = lines.flatMap((line, i) =>
    line[BATCH_PLACE] === KNOWN && batches[i] === undefined ? [{ i, ...placeOf(line) }] : [],
  );
  if (missing.length > 0) {
    const found = await findBatchesOf(sql, missing);
    for (const { i, logId, logIndex } of missing) {
      batches[i] = found.find(
        (one) => one.logId === logId && one.firstIndex <= logIndex && logIndex < one.treeSize,
      );
    }
  }
  learn(lines, batches, known);
  return batches;
}

/** Forgets the batches of a log if this database has another one than a known one: it has taken the place of another. */
function learn(
  lines: readonly Line[],
  batches: readonly (ListedBatch | undefined)[],
  known: KnownBatches,
): void {
  for (const [i, batch] of batches.entries()) {
    if (i > 0 && batch !== undefined && batch === batches[i - 1]) continue;
    const { logId, logIndex } = placeOf(lines[i] as Line);
    const standing = known.find(logId, logIndex);
    if (standing !== undefined && batch?.id !== standing.id) known.forget(logId);
    if (batch !== undefined) known.add(batch);
  }
}

const placeOf = (line: Line) => ({ logId: Number(line[0]), logIndex: Number(line[1]) });

function parseLine(line: Line, batch: ListedBatch | undefined): ListedSubmission {
  const [
    logId,
    logIndex,
    id = '',
    state,
    bytes = '',
    redactedAt = '',
    ,
    metadata = '',
    attested,
    errors = '',
  ] = line;
  const isRedacted = metadata.startsWith('"');
  return {
    logId: Number(logId),
    logIndex: Number(logIndex),
    id,
    schema: isRedacted ? (JSON.parse(metadata) as string) : '',
    metadata: isRedacted ? null : metadata,
    metadataState: Number(state),
    metadataErrors: errors === '' ? null : (JSON.parse(errors) as ListedSubmission['metadataErrors']),
    attestedMetadata: attested || null,
    submittedAtMs: unixMsOf(bytes),
    artifactSha256: bytes.slice(16, 80),
    leafSha256: bytes.slice(80, 144),
    salt: bytes.slice(144) || null,
    redactedAtMs: redactedAt === '' ? null : unixMsOf(redactedAt),
    batchId: batch?.id ?? null,
    batchStatus: batch?.status ?? null,
    witnessedAtMs: batch?.witnessedAtMs ?? null,
  };
}
