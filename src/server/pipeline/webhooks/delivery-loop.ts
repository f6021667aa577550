/**
 * How the width of what is sent at a time changes after an attempt. Of a fraction the whole counts, so that 1 / width for
 * each attempt is one more for a round of them; at 0 nothing more is sent in this loop.
 */
export type ConcurrencyChange = (limit: number) => number;

/** What a loop works with. */
export type DeliveryDeps<T> = {
  /** Claims up to `most` that are due; fewer than `wanted` means that no more are, for now. */
  claim: (most: number) => Promise<{ rows: T[]; wanted: number }>;
  /** Whether what was claimed may still be sent: the subscription is as it was, and nobody else's. */
  leaseHolds: () => Promise<boolean>;
  /** Sends one: calls `sent` when the endpoint has had its say, and resolves when that is recorded. Never rejects. */
  send: (row: T, sent: (next: ConcurrencyChange) => void) => Promise<void>;
  /** Takes back one that was claimed and will not be sent. */
  releaseUnsent: (row: T) => void;
  isStopping: () => boolean;
};

/** How long one subscription is worked on before others get their loop. */
const LOOP_MS = 10_000;
/** What else is due, and whether what waits for its request may still be sent, is asked this often. */
const POLL_MS = 1_000;
/** So long after its claim one is still sent: its attempt must end before it is due again. */
const READY_MS = 40_000;
/** A claim costs as much as some thirty of its rows. */
const MAX_CLAIM = 64;

type Loop<T> = {
  concurrency: number;
  /** How many the next claim asks for, unless the endpoint gets one at a time. */
  claimRows: number;
  /** Whether the last attempt was no reason to send fewer at a time. */
  isKeepingUp: boolean;
  /** Whether a claim, or the question whether it stands, is under way. */
  isQuerying: boolean;
  /** When the last of these was answered. */
  leaseCheckedAtMs: number;
  /** Claimed, and waiting for their request. */
  ready: { row: T; goodUntilMs: number }[];
  sending: number;
  recording: number;
  /** When to look for more that is due. */
  nextClaimAtMs: number;
  endsAtMs: number;
  failed: unknown;
  /** Called when anything ends. What follows waits for the event loop, as the connection does to be free again. */
  wake: () => void;
};

/**
 * Sends what is due for a while: `width` at a time, which each attempt may change. While the endpoint keeps up, more
 * are claimed ahead, so that no request waits for a claim. Resolves when all that was claimed is sent and recorded, or
 * left; rejects when a claim failed.
 */
export function runDeliveries<T>(deps: DeliveryDeps<T>, concurrency: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const nowMs = performance.now();
    const loop: Loop<T> = {
      concurrency,
      claimRows: width,
      isKeepingUp: false,
      isQuerying: false,
      leaseCheckedAtMs: nowMs,
      ready: [],
      sending: 0,
      recording: 0,
      nextClaimAtMs: 0,
      endsAtMs: nowMs + LOOP_MS,
      failed: undefined,
      wake: () => {
        if (!isAwaited) setImmediate(look);
        isAwaited = true;
      },
    };
    let isAwaited = false;
    const look = () => {
      isAwaited = false;
      advance(deps, loop);
      if (loop.isQuerying || loop.ready.length + loop.sending + loop.recording > 0) return;
      clearInterval(looking);
      if (loop.failed === undefined) resolve();
      else reject(loop.failed);
    };
    const looking = setInterval(() => loop.wake(), POLL_MS);
    loop.wake();
  });
}

function advance<T>(deps: DeliveryDeps<T>, loop: Loop<T>): void {
  const nowMs = performance.now();
  const isFresh = nowMs - loop.leaseCheckedAtMs < POLL_MS;
  if (isFresh || loop.concurrency === 0) sendReady(deps, loop, nowMs);
  if (loop.isQuerying || loop.concurrency === 0) return;
  const isOver = deps.isStopping() || nowMs > loop.endsAtMs || loop.failed !== undefined;
  if (!isOver && nowMs >= loop.nextClaimAtMs && hasRoom(loop)) void query(loop, () => claimMore(deps, loop));
  else if (!isFresh && loop.ready.length > 0) void query(loop, () => checkLease(deps, loop));
}

function hasRoom<T>({ ready, sending, isKeepingUp, claimRows, concurrency }: Loop<T>): boolean {
  return ready.length + sending === 0 || (isKeepingUp && concurrency > 1 && ready.length <= claimRows / 2);
}

async function query<T>(loop: Loop<T>, question: () => Promise<void>): Promise<void> {
  loop.isQuerying = true;
  try {
    await question();
    loop.leaseCheckedAtMs = performance.now();
  } catch (error) {
    loop.failed = error;
    loop.concurrency = 0;
  }
  loop.isQuerying = false;
  loop.wake();
}

async function claimMore<T>({ claim, leaseHolds }: DeliveryDeps<T>, loop: Loop<T>): Promise<void> {
  const { rows, wanted } = await claim(loop.concurrency > 1 ? loop.claimRows : 1);
  const nowMs = performance.now();
  for (const row of rows) loop.ready.push({ row, goodUntilMs: nowMs + READY_MS });
  if (rows.length < wanted) loop.nextClaimAtMs = nowMs + POLL_MS;
  else loop.claimRows = Math.min(MAX_CLAIM, 2 * loop.claimRows);
  if (rows.length === 0 && !(await leaseHolds())) loop.concurrency = 0;
}

async function checkLease<T>({ leaseHolds }: DeliveryDeps<T>, loop: Loop<T>): Promise<void> {
  if (!(await leaseHolds())) loop.concurrency = 0;
}

/** One that has waited too long, and all of them when nothing more is sent, are left to be claimed again. */
function sendReady<T>({ send, releaseUnsent }: DeliveryDeps<T>, loop: Loop<T>, nowMs: number): void {
  while (loop.ready.length > 0 && (loop.sending + 1 <= loop.concurrency || loop.concurrency === 0)) {
    const { row, goodUntilMs } = loop.ready.shift()!;
    if (nowMs >= goodUntilMs || loop.concurrency === 0) {
      releaseUnsent(row);
      continue;
    }
    loop.sending++;
    const recorded = send(row, (next) => {
      const limit = loop.concurrency === 0 ? 0 : next(loop.concurrency);
      loop.isKeepingUp = limit >= loop.concurrency;
      loop.concurrency = limit;
      loop.sending--;
      loop.recording++;
      loop.wake();
    });
    void recorded.then(() => {
      loop.recording--;
      loop.wake();
    });
  }
}
