/**
 * The delivery loop of one subscription. It sleeps until an event wakes it: a slot, a response, a recorded attempt, the
 * result of a query, or a second that has passed. Then `advance` takes all steps that are possible: it returns expired
 * rows, takes or releases the slot of the next request, sends rows, and claims more or checks the lease.
 */
import type { SlotShare } from '../../jobs/project-slots.js';

/**
 * Next concurrency limit after an attempt (additive increase, multiplicative decrease). The limit is fractional and
 * floored when used: +1 / limit per success is +1 per round of successes. 0 ends the loop.
 */
export type ConcurrencyChange = (limit: number) => number;

/** The dependencies of a delivery loop. */
export type DeliveryDeps<T> = {
  /** Claims up to `most` due rows. Fewer rows mean that no more are due now. */
  claim: (most: number) => Promise<T[]>;
  /** Whether the lease still holds: the subscription is unchanged and owned by this worker. */
  leaseHolds: () => Promise<boolean>;
  /** Opens the request slots. `granted` is called when a slot is acquired that was not free. */
  openSlots: (granted: () => void) => SlotShare;
  /** Sends one row. Calls `sent` after the response, and resolves once the attempt is recorded. Never rejects. */
  send: (row: T, sent: (next: ConcurrencyChange) => void) => Promise<void>;
  /** Returns a claimed row that will not be sent. */
  returnUnsent: (row: T) => void;
  isStopping: () => boolean;
};

/** How long the loop runs from its first request before other subscriptions get their turn. */
const LOOP_MS = 10_000;
/** Interval of claims without due rows, and of lease checks. */
const POLL_MS = 1_000;
/** A claimed row expires this long after its claim: the attempt must end within the visibility timeout. */
const READY_MS = 40_000;
/** Upper bound of rows per claim. A claim costs as much as some thirty of its rows. */
const MAX_CLAIM = 64;
/** A full claim makes the next one so much larger. Doubling sends 5 % fewer events a second. */
const CLAIM_GROWTH = 4;

/** How fast the endpoint is sent to. */
type Pace = {
  /** 0 ends the loop. */
  concurrency: number;
  /** Rows of the next claim, unless the concurrency is 1. */
  claimRows: number;
  /** Whether the last attempt did not reduce the concurrency. */
  isKeepingUp: boolean;
};

/** Claims and lease checks, one at a time. */
type Queries = {
  isUnderWay: boolean;
  /** When the last successful one began: its result is as of then, however late it arrives. */
  succeededAtMs: number;
  /** The earliest time of the next claim. */
  nextClaimAtMs: number;
  error: unknown;
};

/** Claimed rows on their way. */
type Rows<T> = {
  ready: { row: T; expiresAtMs: number }[];
  /** The slots of requests, and whether that of the next is acquired. */
  slots: SlotShare;
  hasSlot: boolean;
  sending: number;
  recording: number;
};

type Loop<T> = {
  pace: Pace;
  queries: Queries;
  rows: Rows<T>;
  endsAtMs: number;
  /** Schedules the next step, after the event loop has freed the connection. */
  wake: () => void;
};

/**
 * Sends due deliveries at a concurrency limit that each attempt adjusts. Claims ahead while the endpoint keeps up, so that
 * no request waits for a claim. Resolves once every claimed row is recorded or returned. Rejects if a claim fails.
 */
export function runDeliveries<T>(deps: DeliveryDeps<T>, concurrency: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const loop: Loop<T> = {
      pace: { concurrency, claimRows: concurrency, isKeepingUp: false },
      queries: { isUnderWay: false, succeededAtMs: performance.now(), nextClaimAtMs: 0, error: undefined },
      rows: {
        ready: [],
        slots: deps.openSlots(() => {
          loop.rows.hasSlot = true;
          loop.wake();
        }),
        hasSlot: false,
        sending: 0,
        recording: 0,
      },
      endsAtMs: Number.POSITIVE_INFINITY,
      wake: () => {
        if (!isScheduled) setImmediate(step);
        isScheduled = true;
      },
    };
    const { queries, rows } = loop;
    let isScheduled = false;
    const step = () => {
      isScheduled = false;
      advance(deps, loop);
      if (queries.isUnderWay || rows.ready.length + rows.sending + rows.recording > 0) return;
      clearInterval(timer);
      rows.slots.close();
      if (queries.error === undefined) resolve();
      else reject(queries.error);
    };
    const timer = setInterval(() => loop.wake(), POLL_MS);
    loop.wake();
  });
}

function advance<T>(deps: DeliveryDeps<T>, loop: Loop<T>): void {
  const { pace, queries, rows, endsAtMs } = loop;
  const nowMs = performance.now();
  const isFresh = nowMs - queries.succeededAtMs < POLL_MS;
  returnExpired(deps, loop, nowMs);
  adjustSlot(loop);
  if (isFresh) sendReady(deps, loop);
  if (queries.isUnderWay || pace.concurrency === 0) return;
  const isOver = deps.isStopping() || nowMs > endsAtMs || queries.error !== undefined;
  if (!isOver && nowMs >= queries.nextClaimAtMs && hasRoom(loop))
    void query(loop, () => claimMore(deps, loop));
  else if (!isFresh && rows.hasSlot) void query(loop, () => checkLease(deps, pace));
}

function hasRoom<T>({
  pace: { isKeepingUp, claimRows, concurrency },
  rows: { ready, sending },
}: Loop<T>): boolean {
  return ready.length + sending === 0 || (isKeepingUp && concurrency > 1 && ready.length <= claimRows / 2);
}

async function query<T>({ pace, queries, wake }: Loop<T>, run: () => Promise<void>): Promise<void> {
  queries.isUnderWay = true;
  const startedMs = performance.now();
  try {
    await run();
    queries.succeededAtMs = startedMs;
  } catch (error) {
    queries.error = error;
    pace.concurrency = 0;
  }
  queries.isUnderWay = false;
  wake();
}

async function claimMore<T>(deps: DeliveryDeps<T>, { pace, queries, rows }: Loop<T>): Promise<void> {
  const most = pace.concurrency > 1 ? pace.claimRows : 1;
  const claimed = await deps.claim(most);
  const nowMs = performance.now();
  for (const row of claimed) rows.ready.push({ row, expiresAtMs: nowMs + READY_MS });
  if (claimed.length < most) queries.nextClaimAtMs = nowMs + POLL_MS;
  else pace.claimRows = Math.min(MAX_CLAIM, CLAIM_GROWTH * pace.claimRows);
  if (claimed.length === 0) await checkLease(deps, pace);
}

async function checkLease<T>({ leaseHolds }: DeliveryDeps<T>, pace: Pace): Promise<void> {
  if (!(await leaseHolds())) pace.concurrency = 0;
}

/** Returns expired rows, and all rows once the limit is 0 or the worker stops. */
function returnExpired<T>(
  deps: DeliveryDeps<T>,
  { pace: { concurrency }, rows: { ready } }: Loop<T>,
  nowMs: number,
): void {
  const isOver = concurrency === 0 || deps.isStopping();
  while (ready.length > 0 && (isOver || nowMs >= ready[0]!.expiresAtMs))
    deps.returnUnsent(ready.shift()!.row);
}

/** Whether a row may be sent, given a slot. */
function needsSlot<T>({ pace, rows }: Loop<T>): boolean {
  return rows.ready.length > 0 && rows.sending + 1 <= pace.concurrency;
}

/**
 * Takes a slot for the next request or queues for one, and releases it if there is no such request. Keeps the slot while
 * expired rows are re-claimed.
 */
function adjustSlot<T>(loop: Loop<T>): void {
  const { pace, queries, rows } = loop;
  rows.slots.want(Math.floor(pace.concurrency));
  if (needsSlot(loop)) rows.hasSlot ||= rows.slots.take();
  else if (rows.hasSlot && !(queries.isUnderWay && rows.ready.length === 0)) {
    rows.slots.release();
    rows.hasSlot = false;
  }
}

/** Starts requests up to the limit, as far as there are slots. */
function sendReady<T>(deps: DeliveryDeps<T>, loop: Loop<T>): void {
  const { pace, rows, wake } = loop;
  while (rows.hasSlot && needsSlot(loop)) {
    const { row } = rows.ready.shift()!;
    rows.hasSlot = false;
    rows.sending++;
    loop.endsAtMs = Math.min(loop.endsAtMs, performance.now() + LOOP_MS);
    const recorded = deps.send(row, (next) => {
      const limit = pace.concurrency === 0 ? 0 : next(pace.concurrency);
      pace.isKeepingUp = limit >= pace.concurrency;
      pace.concurrency = limit;
      rows.sending--;
      rows.slots.release();
      rows.recording++;
      wake();
    });
    void recorded.then(() => {
      rows.recording--;
      wake();
    });
    adjustSlot(loop);
  }
}
