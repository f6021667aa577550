/**
 * Consumes: submissions that handlers have checked, signed and hashed.
 * Commit point: the commit of one `append_submissions` call; a submission is acknowledged only after it.
 * Emits: `wake` after each call that stored a row, which triggers sealing.
 * A crash leaves: nothing before the commit; after it the rows, which a retry with the same key or id finds.
 */

import { unavailable } from '../../core/errors.js';
import { activeSpan } from '../../telemetry/spans.js';
import type { NewStatement } from '../statements/stored-statement.js';
import type { NewSubmission, SequencedRow } from './sequence-submissions.js';
import {
  notConfirmed,
  type QueuedRow,
  rejectAll,
  type SequencerDeps,
  takeBatch,
  writeRows,
} from './write-rows.js';

/** Batches concurrent submissions of one log into single writes. */
export type Sequencer = {
  /** Announces a row that is being signed, so that others wait for it. Call what it returns once it is signed or failed. */
  announce(): () => void;
  /**
   * Resolves once the row is durable or is a replay. Rejects with the error for the caller, at the latest when the patience
   * since `arrivedMs` is over; by default since now.
   */
  add(row: NewSubmission, arrivedMs?: number): Promise<SequencedRow>;
  /** The same for many rows: the result of each, or the error for its caller, in their order. */
  addMany(rows: readonly NewSubmission[]): Promise<(SequencedRow | Error)[]>;
  /** The number of rows in the queue. */
  queued(): number;
  /** Resolves once the queue is empty and no call is in flight. No row may be added afterwards. */
  close(): Promise<void>;
};

const ROW_OVERHEAD_BYTES = 600;
const SUBJECT_BYTES = 80;
/** Rows do not wait for a call that takes longer: it may never return. */
const SLOW_CALL_MS = 250;
/**
 * How long rows wait for others that are being signed. This and the next wait took Postgres 47 µs for a row in place of 67,
 * and the main thread 213 in place of 239 (64 clients, busy cores, one run).
 */
const MAX_SIGNING_MS = 5;
/** Clients that a call has answered send their next request within this time, if they wait for nothing else. */
const RETURN_MS = 2;
/**
 * The longest time from call to call while clients do not wait for their answers; the more rows, the shorter. At 200 rows a
 * second all processes take 1.5 ms for a row in place of 2.1 to 2.4, at 2,000 0.32 in place of 0.36 (`npm run bench -- --only
 * paced`).
 */
const GATHER_MS = 20;

function statementBytes({ text, subjects }: NewStatement): number {
  return text.length + subjects.length * SUBJECT_BYTES;
}

/** Creates the sequencer of one log. Rows that arrive during a call wait for the next one. */
export function createSequencer(deps: SequencerDeps): Sequencer {
  const queue: QueuedRow[] = [];
  const calls = createCalls(deps, queue);
  const add: Sequencer['add'] = (row, arrivedMs = deps.clock()) => {
    if (calls.waiting() >= deps.limits.maxQueuedRows)
      return Promise.reject(unavailable('too many submissions are waiting to be written', 1));
    const queuedMs = deps.clock();
    const deadline = arrivedMs + deps.patienceMs;
    const bytes =
      row.metadata.length +
      (row.metadataErrors?.length ?? 0) +
      (row.statement === null ? 0 : statementBytes(row.statement)) +
      ROW_OVERHEAD_BYTES;
    const { promise, ...outcome } = newOutcome<SequencedRow>(deadline - queuedMs, () => waiting.overdue());
    const waiting: QueuedRow = {
      row,
      bytes,
      arrivedMs,
      queuedMs,
      deadline,
      again: false,
      overdue: notConfirmed,
      span: activeSpan(),
      ...outcome,
    };
    queue.push(waiting);
    calls.schedule();
    return promise;
  };
  return {
    add,
    announce: calls.announce,
    addMany: (rows) => Promise.all(rows.map((row) => add(row).catch((error: Error) => error))),
    queued: calls.waiting,
    close: calls.idle,
  };
}

/** How long a call may take after the patience of a row has ended. */
const LAST_CALL_MS = 500;

/** The outcome of a row. It is `overdue` after `patienceMs` and the last call, whether that has returned or not. */
function newOutcome<T>(patienceMs: number, overdue: () => Error) {
  let isOver = false;
  const settled = { resolve: (_: T): void => {}, reject: (_: Error): void => {} };
  const promise = new Promise<T>((resolve, reject) => Object.assign(settled, { resolve, reject }));
  const end = () => {
    isOver = true;
    clearTimeout(timer);
  };
  const reject = (error: Error) => {
    end();
    settled.reject(error);
  };
  const timer = setTimeout(() => reject(overdue()), patienceMs + LAST_CALL_MS);
  const resolve = (value: T) => {
    end();
    settled.resolve(value);
  };
  return { promise, resolve, reject, isOver: () => isOver };
}

/** The calls that write the queue. */
type Calls = {
  /** Starts a call in the next turn, or once it is worth one. */
  schedule: () => void;
  announce: Sequencer['announce'];
  /** Rows in the queue, and those that are queued again after a delay. */
  waiting: () => number;
  /** Resolves once nothing waits and no call is in flight. */
  idle: () => Promise<void>;
};

function createCalls(deps: SequencerDeps, queue: QueuedRow[]): Calls {
  const pace = createPace(deps, queue);
  let delayed = 0;
  let scheduled = false;
  let onIdle: (() => void) | undefined;

  const schedule = () => {
    if (scheduled || queue.length === 0) return;
    const ms = pace.waitMs();
    if (ms > 0) {
      wakeAfter(ms);
      return;
    }
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      while (queue.length > 0 && pace.waitMs() <= 0) void flush(takeBatch(queue, deps.limits));
      schedule();
    });
  };
  const wakeAfter = createAlarm(deps.clock, schedule);
  const isIdle = () => pace.inFlight() === 0 && delayed === 0 && queue.length === 0;
  const flush = async (flushed: QueuedRow[]) => {
    pace.started();
    await writeRows(deps, flushed, later).catch((error: Error) => rejectAll(flushed, error));
    pace.ended(flushed.length);
    schedule();
    if (isIdle()) onIdle?.();
  };
  const later = (row: QueuedRow, delayMs: number) => {
    delayed++;
    setTimeout(() => {
      delayed--;
      queue.push(row);
      schedule();
    }, delayMs);
  };
  return {
    schedule,
    announce: () => {
      pace.announced(1);
      return () => {
        pace.announced(-1);
        schedule();
      };
    },
    waiting: () => queue.length + delayed,
    idle: () =>
      new Promise((resolve) => {
        if (isIdle()) resolve();
        else onIdle = resolve;
      }),
  };
}

/** Returns a function that schedules `wake` in so many milliseconds. Of several calls the earliest time counts. */
function createAlarm(clock: () => number, wake: () => void): (ms: number) => void {
  let set: { atMs: number; timer: NodeJS.Timeout } | undefined;
  return (ms) => {
    const atMs = clock() + ms;
    if (set !== undefined && atMs >= set.atMs) return;
    clearTimeout(set?.timer);
    const timer = setTimeout(() => {
      set = undefined;
      wake();
    }, ms);
    set = { atMs, timer };
  };
}

/** When calls start: late enough that most rows of one turn of the clients share a call. */
type Pace = {
  /** The milliseconds until a call may start with the queued rows; 0 or less if now. */
  waitMs: () => number;
  announced: (change: 1 | -1) => void;
  started: () => void;
  ended: (rows: number) => void;
  inFlight: () => number;
};

function createPace(
  { limits, clock }: SequencerDeps,
  queue: readonly Pick<QueuedRow, 'arrivedMs' | 'queuedMs'>[],
): Pace {
  let inFlight = 0;
  let startedMs = Number.NEGATIVE_INFINITY;
  let endedMs = Number.NEGATIVE_INFINITY;
  let answered = 0;
  let announced = 0;
  const msUntilGathered = (nowMs: number) => {
    const returnMs = endedMs + RETURN_MS;
    const returned = queue.filter(({ arrivedMs }) => arrivedMs <= returnMs).length;
    if (returned >= answered) return 0;
    if (2 * returned >= answered || nowMs < returnMs) return returnMs - nowMs;
    return startedMs + GATHER_MS * (1 - queue.length / limits.enoughRows) - nowMs;
  };
  const msUntilSigned = (nowMs: number) =>
    announced === 0 ? 0 : Math.max(endedMs, queue[0]?.queuedMs ?? 0) + MAX_SIGNING_MS - nowMs;
  return {
    waitMs: () => {
      if (inFlight >= limits.maxInFlight) return SLOW_CALL_MS;
      if (queue.length >= limits.enoughRows) return 0;
      const nowMs = clock();
      if (inFlight > 0) return startedMs + SLOW_CALL_MS - nowMs;
      return Math.max(msUntilGathered(nowMs), msUntilSigned(nowMs));
    },
    announced: (change) => {
      announced += change;
    },
    started: () => {
      inFlight++;
      startedMs = clock();
    },
    ended: (rows) => {
      inFlight--;
      endedMs = clock();
      answered = rows;
    },
    inFlight: () => inFlight,
  };
}
