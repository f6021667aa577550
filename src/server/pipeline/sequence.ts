/**
 * Consumes: submissions that handlers have checked, signed and hashed.
 * Commit point: the commit of one `append_submissions` call; a submission is acknowledged only after it.
 * Emits: `wake` after each call that stored a row, which triggers sealing.
 * A crash leaves: nothing before the commit; after it the rows, which a retry with the same key or id finds.
 */

import { fromHex } from '../../proof/bytes/encoding.js';
import { ApiError, idempotencyInProgress, unavailable } from '../core/errors.js';
import { settleAll } from '../core/settle-all.js';
import type { Pool } from '../store/database/connect.js';
import { errorCode, isDatabaseUnavailable } from '../store/database/database-errors.js';
import {
  FROZEN_SQLSTATE,
  type NewSubmission,
  type SequencedRow,
  SubmissionOutcome,
  sequenceSubmissions,
} from '../store/submissions/sequence-submissions.js';
import type { Leaf } from './acknowledged.js';

/** Bounds of one call, of the calls in flight and of the queue. */
type SequencerLimits = {
  maxRows: number;
  maxBytes: number;
  maxInFlight: number;
  /** Rows that start another call while one is in flight: a call costs Postgres as much as 30 to 50 rows do. */
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

/** Batches concurrent submissions of one log into single writes. */
export type Sequencer = {
  /** Resolves once the row is durable or is a replay. Rejects with the error for the caller. */
  add(row: NewSubmission): Promise<SequencedRow>;
  /** The same for many rows, with one promise: the result of each, or the error for its caller, in their order. */
  addMany(rows: readonly NewSubmission[]): Promise<(SequencedRow | Error)[]>;
  /** The number of rows in the queue. */
  queued(): number;
  /** Resolves once the queue is empty and no call is in flight. No row may be added afterwards. */
  close(): Promise<void>;
};

type QueuedRow = {
  row: NewSubmission;
  bytes: number;
  deadline: number;
  again: boolean;
  resolve: (row: SequencedRow) => void;
  reject: (error: Error) => void;
};

const ROW_OVERHEAD_BYTES = 600;
const BUSY_RETRY_MS = 20;
const DISK_FULL_SQLSTATE = '53100';
/** An earlier call with the same ids, whose outcome was unknown, has committed. */
const UNIQUE_VIOLATION_SQLSTATE = '23505';
const LOST_RETRY_MS = 100;
/** Rows do not wait for a call that takes longer: it may never return. */
const SLOW_CALL_MS = 250;

/** Creates the sequencer of one log. Rows that arrive during a call wait for the next one. */
export function createSequencer(deps: SequencerDeps): Sequencer {
  const queue: QueuedRow[] = [];
  let inFlight = 0;
  let delayed = 0;
  let startedMs = 0;
  let scheduled = false;
  let isTimed = false;
  let idle: (() => void) | undefined;

  const mayStart = () => {
    if (queue.length === 0 || inFlight === 0) return queue.length > 0;
    if (inFlight >= deps.limits.maxInFlight) return false;
    return queue.length >= deps.limits.enoughRows || deps.clock() - startedMs >= SLOW_CALL_MS;
  };
  const schedule = () => {
    if (scheduled || queue.length === 0) return;
    if (!mayStart()) {
      if (!isTimed) setTimeout(retime, SLOW_CALL_MS);
      isTimed = true;
      return;
    }
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      while (mayStart()) void flush(takeBatch(queue, deps.limits));
    });
  };
  const retime = () => {
    isTimed = false;
    schedule();
  };
  const flush = async (flushed: QueuedRow[]) => {
    inFlight++;
    startedMs = deps.clock();
    await store(deps, flushed, later).catch((error: Error) => rejectAll(flushed, error));
    inFlight--;
    schedule();
    if (inFlight === 0 && delayed === 0 && queue.length === 0) idle?.();
  };
  const later = (waiting: QueuedRow, delayMs: number) => {
    delayed++;
    setTimeout(() => {
      delayed--;
      queue.push(waiting);
      schedule();
    }, delayMs);
  };

  const enqueue = (row: NewSubmission, answer: Pick<QueuedRow, 'resolve' | 'reject'>) => {
    if (queue.length + delayed >= deps.limits.maxQueuedRows) {
      answer.reject(unavailable('too many submissions are waiting to be written', 1));
      return;
    }
    const bytes = row.metadata.length + (row.metadataErrors?.length ?? 0) + ROW_OVERHEAD_BYTES;
    queue.push({ row, bytes, deadline: deps.clock() + deps.patienceMs, again: false, ...answer });
    schedule();
  };

  return {
    add: (row) => new Promise((resolve, reject) => enqueue(row, { resolve, reject })),
    addMany: (rows) => settleAll(rows, enqueue),
    queued: () => queue.length + delayed,
    close: () =>
      new Promise((resolve) => {
        if (inFlight === 0 && delayed === 0 && queue.length === 0) resolve();
        else idle = resolve;
      }),
  };
}

/** Dequeues the rows of the next call, at most one per idempotency key; the others wait for its outcome. */
function takeBatch(queue: QueuedRow[], limits: SequencerLimits): QueuedRow[] {
  const taken: QueuedRow[] = [];
  const kept: QueuedRow[] = [];
  const keys = new Set<string>();
  let bytes = 0;
  let used = 0;
  for (const waiting of queue) {
    if (taken.length > 0 && (taken.length >= limits.maxRows || bytes + waiting.bytes > limits.maxBytes))
      break;
    used++;
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

type Delay = (waiting: QueuedRow, delayMs: number) => void;

/** Makes one call. Retries the rows after a lost connection; bisects them after a data error, so that a bad row fails alone. */
async function store(deps: SequencerDeps, flushed: QueuedRow[], later: Delay): Promise<void> {
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
  let newest: { logIndex: number; leafHash: string } | undefined;
  for (const [i, { leafHash }] of rows.entries()) {
    const { outcome, logIndex } = results[i] ?? {};
    if (outcome !== SubmissionOutcome.STORED || typeof logIndex !== 'number') continue;
    if (newest === undefined || logIndex > newest.logIndex) newest = { logIndex, leafHash };
  }
  return newest && { logIndex: newest.logIndex, leafHash: fromHex(newest.leafHash) };
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
    await store(deps, flushed.slice(0, middle), later);
    await store(deps, flushed.slice(middle), later);
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

function rejectAll(waiting: readonly QueuedRow[], error: Error): void {
  for (const { reject } of waiting) reject(error);
}
