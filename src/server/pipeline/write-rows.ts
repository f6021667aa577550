/** One call of the sequencer: writes queued rows and gives each its result. */
import { ApiError, idempotencyInProgress, unavailable } from '../core/errors.js';
import type { Pool } from '../store/database/connect.js';
import { errorCode, isDatabaseUnavailable } from '../store/database/database-errors.js';
import {
  FROZEN_SQLSTATE,
  type NewSubmission,
  type SequencedRow,
  SubmissionOutcome,
  sequenceSubmissions,
} from '../store/submissions/sequence-submissions.js';

/** A leaf at its index; its hash in lower-case hex. */
export type Leaf = { logIndex: number; leafHash: string };

/** Bounds of one call, of the calls in flight and of the queue. */
type SequencerLimits = {
  maxRows: number;
  maxBytes: number;
  maxInFlight: number;
  /** Rows that start another call while one is in flight: a call costs Postgres as much as 60 rows do. */
  enoughRows: number;
  maxQueuedRows: number;
};

/** The dependencies of a sequencer. It alone uses `pool`, so that reads do not delay writes. */
export type SequencerDeps = {
  pool: Pool;
  logId: number;
  limits: SequencerLimits;
  retentionMs: number;
  /** How long a row is retried while its idempotency key is locked or the database is unavailable. */
  patienceMs: number;
  /** Monotonic milliseconds. */
  clock: () => number;
  wake: () => void;
  /** Runs before each call. Throws if the log must not be written, for example after a failover that lost rows. */
  beforeWrite: () => Promise<void>;
  /** Records the newest leaf that a call stored, before any of its requests is answered. */
  recordStored: (leaf: Leaf) => void;
};

/** A submission that waits for its write. */
export type QueuedRow = {
  row: NewSubmission;
  bytes: number;
  deadline: number;
  again: boolean;
  resolve: (row: SequencedRow) => void;
  reject: (error: Error) => void;
};

const BUSY_RETRY_MS = 20;
const DISK_FULL_SQLSTATE = '53100';
/** An earlier call with the same ids, whose outcome was unknown, has committed. */
const UNIQUE_VIOLATION_SQLSTATE = '23505';
const LOST_RETRY_MS = 100;

/** Queues a row again after a delay. */
type Delay = (waiting: QueuedRow, delayMs: number) => void;

/** Makes one call. Retries the rows after a lost connection; bisects them after a data error, so that a bad row fails alone. */
export async function writeRows(deps: SequencerDeps, flushed: QueuedRow[], later: Delay): Promise<void> {
  const again = flushed.some((waiting) => waiting.again);
  const rows = flushed.map((waiting) => waiting.row);
  let results: SequencedRow[];
  try {
    await deps.beforeWrite();
    results = await sequenceSubmissions(deps.pool, deps.logId, rows, again, deps.retentionMs);
  } catch (error) {
    await storeFailed(deps, flushed, later, error);
    return;
  }
  const newest = newestStored(rows, results);
  if (newest !== undefined) {
    deps.recordStored(newest);
    deps.wake();
  }
  for (const [i, waiting] of flushed.entries()) resolveRow(deps, waiting, results[i], later);
}

function newestStored(rows: readonly NewSubmission[], results: readonly SequencedRow[]): Leaf | undefined {
  let newest: Leaf | undefined;
  for (const [i, { leafHash }] of rows.entries()) {
    const { outcome, logIndex } = results[i] ?? {};
    if (outcome !== SubmissionOutcome.STORED || typeof logIndex !== 'number') continue;
    if (newest === undefined || logIndex > newest.logIndex) newest = { logIndex, leafHash };
  }
  return newest;
}

async function storeFailed(
  deps: SequencerDeps,
  flushed: QueuedRow[],
  later: Delay,
  error: unknown,
): Promise<void> {
  const code = errorCode(error) ?? '';
  if (error instanceof ApiError) {
    rejectAll(flushed, error);
  } else if (code === FROZEN_SQLSTATE) {
    rejectAll(
      flushed,
      unavailable('the log is frozen: its database lacks what was published or acknowledged', 60, error),
    );
  } else if (code === DISK_FULL_SQLSTATE) {
    rejectAll(flushed, unavailable('the database has no space for submissions now', 5, error));
  } else if (isDatabaseUnavailable(error) || code === UNIQUE_VIOLATION_SQLSTATE) {
    for (const waiting of flushed) retryRow(deps, waiting, later, error);
  } else if (flushed.length > 1) {
    const middle = flushed.length >> 1;
    await writeRows(deps, flushed.slice(0, middle), later);
    await writeRows(deps, flushed.slice(middle), later);
  } else {
    rejectAll(flushed, error as Error);
  }
}

function retryRow(deps: SequencerDeps, waiting: QueuedRow, later: Delay, cause: unknown): void {
  // The first failure may have taken longer than the patience to surface, so the deadline starts with it.
  if (!waiting.again) waiting.deadline = deps.clock() + deps.patienceMs;
  if (deps.clock() >= waiting.deadline) {
    waiting.reject(
      unavailable(
        'the database did not confirm the write; try again with the same Idempotency-Key',
        2,
        cause,
      ),
    );
    return;
  }
  waiting.again = true;
  later(waiting, LOST_RETRY_MS);
}

function resolveRow(
  deps: SequencerDeps,
  waiting: QueuedRow,
  result: SequencedRow | undefined,
  later: Delay,
): void {
  if (result === undefined) {
    waiting.reject(new Error('append_submissions returned fewer rows than it was given'));
  } else if (result.outcome !== SubmissionOutcome.BUSY) {
    waiting.resolve(result);
  } else if (deps.clock() < waiting.deadline) {
    later(waiting, BUSY_RETRY_MS);
  } else {
    waiting.reject(idempotencyInProgress());
  }
}

/** Rejects rows with one error for their callers. */
export function rejectAll(waiting: readonly QueuedRow[], error: Error): void {
  for (const { reject } of waiting) reject(error);
}
