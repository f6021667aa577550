/**
 * Consumes: submissions that handlers have checked, signed and hashed.
 * Commit point: the commit of one `append_submissions` call; a submission is acknowledged only after it.
 * Emits: `wake` after each call that stored a row, which triggers sealing.
 * A crash leaves: nothing before the commit; after it the rows, which a retry with the same key or id finds.
 */

import { unavailable } from '../core/errors.js';
import type { NewSubmission, SequencedRow } from '../store/submissions/sequence-submissions.js';
import { type QueuedRow, rejectAll, type SequencerDeps, writeRows } from './write-rows.js';

/** Batches concurrent submissions of one log into single writes. */
export type Sequencer = {
  /** Resolves once the row is durable or is a replay. Rejects with the error for the caller. */
  add(row: NewSubmission): Promise<SequencedRow>;
  /** The same for many rows: the result of each, or the error for its caller, in their order. */
  addMany(rows: readonly NewSubmission[]): Promise<(SequencedRow | Error)[]>;
  /** The number of rows in the queue. */
  queued(): number;
  /** Resolves once the queue is empty and no call is in flight. No row may be added afterwards. */
  close(): Promise<void>;
};

const ROW_OVERHEAD_BYTES = 600;
/** Rows do not wait for a call that takes longer: it may never return. */
const SLOW_CALL_MS = 250;

/** Creates the sequencer of one log. Rows that arrive during a call wait for the next one. */
export function createSequencer(deps: SequencerDeps): Sequencer {
  const queue: QueuedRow[] = [];
  const calls = createCalls(deps, queue);
  const add: Sequencer['add'] = (row) =>
    new Promise((resolve, reject) => {
      if (calls.waiting() >= deps.limits.maxQueuedRows) {
        reject(unavailable('too many submissions are waiting to be written', 1));
        return;
      }
      const bytes = row.metadata.length + (row.metadataErrors?.length ?? 0) + ROW_OVERHEAD_BYTES;
      queue.push({ row, bytes, deadline: deps.clock() + deps.patienceMs, again: false, resolve, reject });
      calls.schedule();
    });
  return {
    add,
    addMany: (rows) => Promise.all(rows.map((row) => add(row).catch((error: Error) => error))),
    queued: calls.waiting,
    close: calls.idle,
  };
}

/** The calls that write the queue. */
type Calls = {
  /** Starts a call in the next turn, or once it is worth one. */
  schedule: () => void;
  /** Rows in the queue, and those that are queued again after a delay. */
  waiting: () => number;
  /** Resolves once nothing waits and no call is in flight. */
  idle: () => Promise<void>;
};

function createCalls(deps: SequencerDeps, queue: QueuedRow[]): Calls {
  let inFlight = 0;
  let delayed = 0;
  let startedMs = 0;
  let scheduled = false;
  let isTimed = false;
  let onIdle: (() => void) | undefined;

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
  const isIdle = () => inFlight === 0 && delayed === 0 && queue.length === 0;
  const flush = async (flushed: QueuedRow[]) => {
    inFlight++;
    startedMs = deps.clock();
    await writeRows(deps, flushed, later).catch((error: Error) => rejectAll(flushed, error));
    inFlight--;
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
    waiting: () => queue.length + delayed,
    idle: () =>
      new Promise((resolve) => {
        if (isIdle()) resolve();
        else onIdle = resolve;
      }),
  };
}

/** Dequeues the rows of the next call, at most one per idempotency key; the others wait for its outcome. */
function takeBatch(queue: QueuedRow[], { maxRows, maxBytes }: SequencerDeps['limits']): QueuedRow[] {
  const taken: QueuedRow[] = [];
  const kept: QueuedRow[] = [];
  const keys = new Set<string>();
  let bytes = 0;
  let used = 0;
  for (const waiting of queue) {
    if (taken.length > 0 && (taken.length >= maxRows || bytes + waiting.bytes > maxBytes)) break;
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
