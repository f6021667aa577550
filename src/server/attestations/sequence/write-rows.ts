/** One call of the sequencer: takes queued rows, writes them and gives each its result. */
import { ApiError, idempotencyInProgress, unavailable } from '../../core/errors.js';
import type { Pool } from '../../database/connect.js';
import { DISK_FULL, errorCode, isDatabaseUnavailable, STANDBY_AWAY } from '../../database/database-errors.js';
import type { Leaf } from '../../log/store/leaves.js';
import { isLackingPartition } from '../../log/store/partitions.js';
import { inSharedSpan, type SpanReference } from '../../telemetry/spans.js';
import {
  FROZEN_SQLSTATE,
  type NewSubmission,
  type SequencedRow,
  SubmissionOutcome,
  sequenceSubmissions,
} from './sequence-submissions.js';

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
  /** How long a row waits for its outcome, from the arrival of its request. */
  patienceMs: number;
  /** Monotonic milliseconds. */
  clock: () => number;
  /** Called after each call that stored a row. */
  wake: () => void;
  /** Called after each call that stored nothing because the log has no partition for its next leaves. */
  onLackingPartition: (logId: number) => void;
  guard: WriteGuard;
  /** Runs each call, and ends the wait for it when the synchronous standby is away. */
  guardCommit: <T>(call: () => Promise<T>) => Promise<T>;
};

/** Guards a log against a database that lost its rows. */
type WriteGuard = {
  /** Runs before each call. Throws if the log must not be written, for example after a failover that lost rows. */
  assertWritable: (pool: Pool, logId: number) => Promise<void>;
  /** Records the newest leaf that a call stored, before any of its requests is answered. */
  recordAcknowledged: (logId: number, leaf: Leaf) => void;
};

/** A submission that waits for its write. */
export type QueuedRow = {
  row: NewSubmission;
  bytes: number;
  /** When its request arrived, in monotonic milliseconds as the others. */
  arrivedMs: number;
  queuedMs: number;
  deadline: number;
  again: boolean;
  /** The span of its call, if that is recorded. */
  span: SpanReference | undefined;
  /** The error at its deadline, by what the last call said of it. */
  overdue: () => ApiError;
  resolve: (row: SequencedRow) => void;
  reject: (error: Error) => void;
  /** Whether it has its outcome. */
  isOver: () => boolean;
};

const BUSY_RETRY_MS = 20;
/** An earlier call with the same ids, whose outcome was unknown, has committed. */
const UNIQUE_VIOLATION_SQLSTATE = '23505';
const LOST_RETRY_MS = 100;

/** Queues a row again after a delay. */
type Delay = (waiting: QueuedRow, delayMs: number) => void;

/** Dequeues the rows of the next call, at most one per idempotency key; the others wait for its outcome. */
export function takeBatch(queue: QueuedRow[], { maxRows, maxBytes }: SequencerLimits): QueuedRow[] {
  const taken: QueuedRow[] = [];
  const kept: QueuedRow[] = [];
  const keys = new Set<string>();
  let bytes = 0;
  let used = 0;
  for (const waiting of queue) {
    if (taken.length > 0 && (taken.length >= maxRows || bytes + waiting.bytes > maxBytes)) break;
    used++;
    if (waiting.isOver()) continue;
    const { idempotency, apiKeyId } = waiting.row;
    const key = idempotency && `${apiKeyId} ${idempotency.key}`;
    if (key !== undefined && keys.has(key)) {
      kept.push(waiting);
      continue;
    }
    if (key !== undefined) keys.add(key);
    taken.push(waiting);
    bytes += waiting.bytes;
  }
  queue.splice(0, used, ...kept);
  return taken;
}

/** Makes one call. Retries the rows after a lost connection; bisects them after a data error, so that a bad row fails alone. */
export async function writeRows(deps: SequencerDeps, flushed: QueuedRow[], later: Delay): Promise<void> {
  if (flushed.length === 0) return;
  const spans = flushed.flatMap(({ span }) => span ?? []);
  const attributes = { 'db.operation.batch.size': flushed.length };
  await inSharedSpan('sequence', spans, { attributes }, () => writeOnce(deps, flushed, later));
}

async function writeOnce(deps: SequencerDeps, flushed: QueuedRow[], later: Delay): Promise<void> {
  const again = flushed.some((waiting) => waiting.again);
  const rows = flushed.map((waiting) => waiting.row);
  let results: SequencedRow[];
  try {
    results = await deps.guardCommit(async () => {
      await deps.guard.assertWritable(deps.pool, deps.logId);
      return sequenceSubmissions(deps.pool, deps.logId, rows, again, deps.retentionMs);
    });
  } catch (error) {
    await storeFailed(deps, flushed, later, error);
    return;
  }
  const newest = newestStored(rows, results);
  if (newest !== undefined) {
    deps.guard.recordAcknowledged(deps.logId, newest);
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
  } else if (code === DISK_FULL) {
    rejectAll(flushed, unavailable('the database has no space for submissions now', 5, error));
  } else if (isLackingPartition(error)) {
    deps.onLackingPartition(deps.logId);
    rejectAll(
      flushed,
      unavailable('the database has no partition for the next leaves of the log', 30, error),
    );
  } else if (code === STANDBY_AWAY) {
    rejectAll(flushed, notConfirmed(error));
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
  waiting.overdue = () => notConfirmed(cause);
  if (deps.clock() >= waiting.deadline) {
    waiting.reject(waiting.overdue());
    return;
  }
  waiting.again = true;
  later(waiting, LOST_RETRY_MS);
}

/** The error of a row that may be stored or not. */
export function notConfirmed(cause?: unknown): ApiError {
  const reason =
    errorCode(cause) === STANDBY_AWAY ? (cause as Error).message : 'the database did not confirm the write';
  return unavailable(`${reason}; try again with the same Idempotency-Key`, 2, cause);
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
  } else {
    waiting.overdue = idempotencyInProgress;
    if (deps.clock() < waiting.deadline) later(waiting, BUSY_RETRY_MS);
    else waiting.reject(waiting.overdue());
  }
}

/** Rejects rows with one error for their callers. */
export function rejectAll(waiting: readonly QueuedRow[], error: Error): void {
  for (const { reject } of waiting) reject(error);
}
