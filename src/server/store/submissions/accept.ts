import { byteaArray, type Pool } from '../database/connect.js';

/** A submission ready to be stored; `metadataErrors` is JSON text. Times in Unix milliseconds. */
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

/** What became of a row; the numbers of `accept_submissions`. */
export const AcceptOutcome = { STORED: 0, REPLAYED: 1, KEY_REUSED: 2, BUSY: 3, LIMITED: 4 } as const;

/** The key's use of its submission windows after a call, or undefined when nothing was counted for the row. */
export type WindowUse = { second: number; nSecond: number; nHour: number; nDay: number };

/** What became of one row. `resourceId` is the stored or the replayed submission's. */
export type AcceptedRow = {
  outcome: number;
  resourceId: string | null;
  logIndex: number | null;
  use: WindowUse | undefined;
};

/** SQLSTATE raised when the log is frozen. */
export const FROZEN_SQLSTATE = 'ATFRZ';

type ResultRow = {
  outcome: number;
  resource_id: string | null;
  log_index: number | null;
  second: number | null;
  n_second: number;
  n_hour: number;
  n_day: number;
};

/**
 * Stores rows by one call of `accept_submissions`, which is one transaction: when it returns, they are durable.
 *
 * @param again true when an earlier call with the same ids may have committed
 * @returns one result per row, in order
 */
export async function acceptSubmissions(
  pool: Pool,
  logId: number,
  rows: readonly NewSubmission[],
  again: boolean,
  retentionMs: number,
): Promise<AcceptedRow[]> {
  const column = <T>(pick: (row: NewSubmission) => T) => rows.map(pick);
  const bytes = (pick: (row: NewSubmission) => Uint8Array | null) => byteaArray(pool, rows.map(pick));
  const result = await pool.unsafe<ResultRow[]>(
    CALL,
    [
      logId,
      again,
      retentionMs,
      column((row) => row.id),
      column((row) => row.projectId),
      column((row) => row.apiKeyId),
      column((row) => row.submittedAtMs),
      bytes((row) => row.artifactSha256),
      column((row) => row.schema),
      column((row) => row.metadata),
      column((row) => row.metadataState),
      column((row) => row.metadataErrors),
      bytes((row) => row.salt),
      bytes((row) => row.commitment),
      column((row) => row.dsseKeyId),
      bytes((row) => row.signature),
      bytes((row) => row.leafHash),
      column((row) => row.idempotency?.key ?? null),
      bytes((row) => row.idempotency?.requestHash ?? null),
      column((row) => row.limits.perSecond),
      column((row) => row.limits.perHour),
      column((row) => row.limits.perDay),
    ],
    { prepare: true },
  );
  return result.map(toAcceptedRow);
}

const CALL = `SELECT * FROM accept_submissions($1, $2, $3, ${Array.from({ length: 19 }, (_, i) => `$${i + 4}`).join(', ')})`;

function toAcceptedRow(row: ResultRow): AcceptedRow {
  const use =
    row.second === null
      ? undefined
      : { second: row.second, nSecond: row.n_second, nHour: row.n_hour, nDay: row.n_day };
  return { outcome: row.outcome, resourceId: row.resource_id, logIndex: row.log_index, use };
}
