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

type Loop<T> = {
  concurrency: number;
  /** Rows of the next claim, unless the concurrency is 1. */
  claimRows: number;
  /** Whether the last attempt did not reduce the concurrency. */
  isKeepingUp: boolean;
  /** Whether a claim or a lease check is in flight. */
  isQuerying: boolean;
  /** When the last successful query began: its result is as of then, however late it arrives. */
  leaseCheckedAtMs: number;
  /** Claimed rows to send. */
  ready: { row: T; expiresAtMs: number }[];
  slots: SlotShare;
  /** Whether the slot of the next request is acquired. */
  hasSlot: boolean;
  sending: number;
  recording: number;
  /** The earliest time of the next claim. */
  nextClaimAtMs: number;
  endsAtMs: number;
  failed: unknown;
  /** Schedules the next step, after the event loop has freed the connection. */
  wake: () => void;
};

/**
 * Sends due deliveries at a concurrency limit that each attempt adjusts. Claims ahead while the endpoint keeps up, so that
 * no request waits for a claim. Resolves once every claimed row is recorded or returned. Rejects if a claim fails.
 */
export function runDeliveries<T>(deps: DeliveryDeps<T>, concurrency: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const nowMs = performance.now();
    const loop: Loop<T> = {
      concurrency,
      claimRows: concurrency,
      isKeepingUp: false,
      isQuerying: false,
      leaseCheckedAtMs: nowMs,
      ready: [],
      slots: deps.openSlots(() => {
        loop.hasSlot = true;
        loop.wake();
      }),
      hasSlot: false,
      sending: 0,
      recording: 0,
      nextClaimAtMs: 0,
      endsAtMs: Number.POSITIVE_INFINITY,
      failed: undefined,
      wake: () => {
        if (!isScheduled) setImmediate(step);
        isScheduled = true;
      },
    };
    let isScheduled = false;
    const step = () => {
      isScheduled = false;
      advance(deps, loop);
      if (loop.isQuerying || loop.ready.length + loop.sending + loop.recording > 0) return;
      clearInterval(timer);
      loop.slots.close();
      if (loop.failed === undefined) resolve();
      else reject(loop.failed);
    };
    const timer = setInterval(() => loop.wake(), POLL_MS);
    loop.wake();
  });
}

function advance<T>(deps: DeliveryDeps<T>, loop: Loop<T>): void {
  const nowMs = performance.now();
  const isFresh = nowMs - loop.leaseCheckedAtMs < POLL_MS;
  returnExpired(deps, loop, nowMs);
  adjustSlot(loop);
  if (isFresh) sendReady(deps, loop);
  if (loop.isQuerying || loop.concurrency === 0) return;
  const isOver = deps.isStopping() || nowMs > loop.endsAtMs || loop.failed !== undefined;
  if (!isOver && nowMs >= loop.nextClaimAtMs && hasRoom(loop)) void query(loop, () => claimMore(deps, loop));
  else if (!isFresh && loop.hasSlot) void query(loop, () => checkLease(deps, loop));
}

function hasRoom<T>({ ready, sending, isKeepingUp, claimRows, concurrency }: Loop<T>): boolean {
  return ready.length + sending === 0 || (isKeepingUp && concurrency > 1 && ready.length <= claimRows / 2);
}

async function query<T>(loop: Loop<T>, run: () => Promise<void>): Promise<void> {
  loop.isQuerying = true;
  const startedMs = performance.now();
  try {
    await run();
    loop.leaseCheckedAtMs = startedMs;
  } catch (error) {
    loop.failed = error;
    loop.concurrency = 0;
  }
  loop.isQuerying = false;
  loop.wake();
}

async function claimMore<T>({ claim, leaseHolds }: DeliveryDeps<T>, loop: Loop<T>): Promise<void> {
  const most = loop.concurrency > 1 ? loop.claimRows : 1;
  const rows = await claim(most);
  const nowMs = performance.now();
  for (const row of rows) loop.ready.push({ row, expiresAtMs: nowMs + READY_MS });
  if (rows.length < most) loop.nextClaimAtMs = nowMs + POLL_MS;
  else loop.claimRows = Math.min(MAX_CLAIM, CLAIM_GROWTH * loop.claimRows);
  if (rows.length === 0 && !(await leaseHolds())) loop.concurrency = 0;
}

async function checkLease<T>({ leaseHolds }: DeliveryDeps<T>, loop: Loop<T>): Promise<void> {
  if (!(await leaseHolds())) loop.concurrency = 0;
}

/** Returns expired rows, and all rows once the limit is 0 or the worker stops. */
function returnExpired<T>(deps: DeliveryDeps<T>, { ready, concurrency }: Loop<T>, nowMs: number): void {
  const isOver = concurrency === 0 || deps.isStopping();
  while (ready.length > 0 && (isOver || nowMs >= ready[0]!.expiresAtMs))
    deps.returnUnsent(ready.shift()!.row);
}

/** Whether a row may be sent, given a slot. */
function needsSlot<T>({ ready, sending, concurrency }: Loop<T>): boolean {
  return ready.length > 0 && sending + 1 <= concurrency;
}

/**
 * Takes a slot for the next request or queues for one, and releases it if there is no such request. Keeps the slot while
 * expired rows are re-claimed.
 */
function adjustSlot<T>(loop: Loop<T>): void {
  loop.slots.want(Math.floor(loop.concurrency));
  if (needsSlot(loop)) loop.hasSlot ||= loop.slots.take();
  else if (loop.hasSlot && !(loop.isQuerying && loop.ready.length === 0)) {
    loop.slots.release();
    loop.hasSlot = false;
  }
}

/** Starts requests up to the limit, as far as there are slots. */
function sendReady<T>(deps: DeliveryDeps<T>, loop: Loop<T>): void {
  while (loop.hasSlot && needsSlot(loop)) {
    const { row } = loop.ready.shift()!;
    loop.hasSlot = false;
    loop.sending++;
    loop.endsAtMs = Math.min(loop.endsAtMs, performance.now() + LOOP_MS);
    const recorded = deps.send(row, (next) => {
      const limit = loop.concurrency === 0 ? 0 : next(loop.concurrency);
      loop.isKeepingUp = limit >= loop.concurrency;
      loop.concurrency = limit;
      loop.sending--;
      loop.slots.release();
      loop.recording++;
      loop.wake();
    });
    void recorded.then(() => {
      loop.recording--;
      loop.wake();
    });
    adjustSlot(loop);
  }
}
