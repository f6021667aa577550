import { type ByteaArray, byteaArray, type Pool } from '../database/connect.js';

/** A submission to append; `metadataErrors` is JSON text. Times in Unix milliseconds. */
export type NewSubmission = {
  id: string;
  projectId: string;
  apiKeyId: string;
  submittedAtMs: number;
  artifactSha256: Uint8Array;
  schema: string;
  /** JCS text. */
  metadata: string;
  metadataState: number;
  metadataErrors: string | null;
  salt: Uint8Array;
  commitment: Uint8Array;
  dsseKeyId: number;
  signature: Uint8Array;
  leafHash: Uint8Array;
  idempotency: { key: string; requestHash: Uint8Array } | undefined;
  limits: { perSecond: number; perHour: number; perDay: number };
};

/** The outcome of a row: the SQL type `submission_outcome`. */
export const SubmissionOutcome = {
  STORED: 'stored',
  REPLAYED: 'replayed',
  KEY_REUSED: 'key_reused',
  BUSY: 'busy',
  LIMITED: 'limited',
} as const;

/** Requests that an API key has made in its current windows; `second` is the current second since the epoch. */
export type WindowUse = { second: number; nSecond: number; nHour: number; nDay: number };

/**
 * The result of one row. `resourceId` is the id of the stored or replayed submission. `use` is undefined if the row was
 * not counted.
 */
export type SequencedRow = {
  outcome: (typeof SubmissionOutcome)[keyof typeof SubmissionOutcome];
  resourceId: string | null;
  logIndex: number | null;
  use: WindowUse | undefined;
};

/** SQLSTATE raised when the log is frozen. */
export const FROZEN_SQLSTATE = 'ATFRZ';

type ResultRow = {
  outcome: SequencedRow['outcome'];
  resource_id: string | null;
  log_index: number | null;
  second: number | null;
  n_second: number;
  n_hour: number;
  n_day: number;
};

type Column = {
  name: string;
  toArray: (rows: readonly NewSubmission[], pool: Pool) => (string | number | null)[] | ByteaArray;
};

const column = (name: string, pick: (row: NewSubmission) => string | number | null): Column => ({
  name,
  toArray: (rows) => rows.map(pick),
});

const byteaColumn = (name: string, pick: (row: NewSubmission) => Uint8Array | null): Column => ({
  name,
  toArray: (rows, pool) => byteaArray(pool, rows.map(pick)),
});

/** The parameters of `sequence_submissions` that are arrays, one element per row. */
const COLUMNS: readonly Column[] = [
  column('p_id', (row) => row.id),
  column('p_project_id', (row) => row.projectId),
  column('p_submitted_ms', (row) => row.submittedAtMs),
  byteaColumn('p_artifact_sha256', (row) => row.artifactSha256),
  column('p_schema', (row) => row.schema),
  column('p_metadata', (row) => row.metadata),
  column('p_metadata_state', (row) => row.metadataState),
  column('p_metadata_errors', (row) => row.metadataErrors),
  byteaColumn('p_salt', (row) => row.salt),
  byteaColumn('p_commitment', (row) => row.commitment),
  column('p_dsse_key_id', (row) => row.dsseKeyId),
  byteaColumn('p_signature', (row) => row.signature),
  byteaColumn('p_leaf_hash', (row) => row.leafHash),
  column('p_api_key_id', (row) => row.apiKeyId),
  column('p_idempotency_key', (row) => row.idempotency?.key ?? null),
  byteaColumn('p_request_hash', (row) => row.idempotency?.requestHash ?? null),
  column('p_limit_second', (row) => row.limits.perSecond),
  column('p_limit_hour', (row) => row.limits.perHour),
  column('p_limit_day', (row) => row.limits.perDay),
];

const PARAMETERS = ['p_log_id', 'p_is_retry', 'p_retention_ms', ...COLUMNS.map(({ name }) => name)];
const CALL = `SELECT * FROM sequence_submissions(${PARAMETERS.map((name, i) => `${name} => $${i + 1}`).join(', ')})`;

/**
 * Appends rows to a log by one call of `sequence_submissions`, which is one transaction: they are durable when it
 * returns.
 *
 * @param isRetry true if an earlier call with the same ids may have committed
 * @returns one result per row, in order
 */
export async function sequenceSubmissions(
  pool: Pool,
  logId: number,
  rows: readonly NewSubmission[],
  isRetry: boolean,
  retentionMs: number,
): Promise<SequencedRow[]> {
  const arrays = COLUMNS.map(({ toArray }) => toArray(rows, pool));
  const parameters = [logId, isRetry, retentionMs, ...arrays];
  const result = await pool.unsafe<ResultRow[]>(CALL, parameters, { prepare: true });
  return result.map(toSequencedRow);
}

function toSequencedRow(row: ResultRow): SequencedRow {
  const use =
    row.second === null
      ? undefined
      : { second: row.second, nSecond: row.n_second, nHour: row.n_hour, nDay: row.n_day };
  return { outcome: row.outcome, resourceId: row.resource_id, logIndex: row.log_index, use };
}
