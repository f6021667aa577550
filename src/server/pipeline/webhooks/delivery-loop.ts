/**
 * How the width of what is sent at a time changes after an attempt. Of a fraction the whole counts, so that 1 / width for
 * each attempt is one more for a round of them; at 0 nothing more is sent in this turn.
 */
export type Width = (width: number) => number;

/** What a turn works with. */
export type TurnDeps<T> = {
  /** Claims up to `most` that are due; fewer than `wanted` means that no more are, for now. */
  claim: (most: number) => Promise<{ rows: T[]; wanted: number }>;
  /** Whether what was claimed may still be sent: the subscription is as it was, and nobody else's. */
  stands: () => Promise<boolean>;
  /** Sends one: calls `sent` when the endpoint has had its say, and resolves when that is recorded. Never rejects. */
  send: (row: T, sent: (next: Width) => void) => Promise<void>;
  /** Takes back one that was claimed and will not be sent. */
  leave: (row: T) => void;
  isStopping: () => boolean;
};

/** How long one subscription is worked on before others get their turn. */
const TURN_MS = 10_000;
/** What else is due, and whether what waits for its request may still be sent, is asked this often. */
const LOOK_MS = 1_000;
/** So long after its claim one is still sent: its attempt must end before it is due again. */
const READY_MS = 40_000;
/** A claim costs as much as some thirty of its rows. */
const MAX_CLAIM = 64;

type Turn<T> = {
  width: number;
  /** How many the next claim asks for, unless the endpoint gets one at a time. */
  claimRows: number;
  /** Whether the last attempt was no reason to send fewer at a time. */
  isKeepingUp: boolean;
  /** Whether a claim, or the question whether it stands, is under way. */
  isAsking: boolean;
  /** When the last of these was answered. */
  stoodAtMs: number;
  /** Claimed, and waiting for their request. */
  ready: { row: T; goodUntilMs: number }[];
  sending: number;
  recording: number;
  /** When to look for more that is due. */
  lookAtMs: number;
  untilMs: number;
  failed: unknown;
  /** Called when anything ends. What follows waits for the event loop, as the connection does to be free again. */
  ended: () => void;
};

/**
 * Sends what is due for a while: `width` at a time, which each attempt may change. While the endpoint keeps up, more
 * are claimed ahead, so that no request waits for a claim. Resolves when all that was claimed is sent and recorded, or
 * left; rejects when a claim failed.
 */
export function takeTurn<T>(deps: TurnDeps<T>, width: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const nowMs = performance.now();
    const turn: Turn<T> = {
      width,
      claimRows: width,
      isKeepingUp: false,
      isAsking: false,
      stoodAtMs: nowMs,
      ready: [],
      sending: 0,
      recording: 0,
      lookAtMs: 0,
      untilMs: nowMs + TURN_MS,
      failed: undefined,
      ended: () => {
        if (!isAwaited) setImmediate(look);
        isAwaited = true;
      },
    };
    let isAwaited = false;
    const look = () => {
      isAwaited = false;
      goOn(deps, turn);
      if (turn.isAsking || turn.ready.length + turn.sending + turn.recording > 0) return;
      clearInterval(looking);
      if (turn.failed === undefined) resolve();
      else reject(turn.failed);
    };
    const looking = setInterval(() => turn.ended(), LOOK_MS);
    turn.ended();
  });
}

function goOn<T>(deps: TurnDeps<T>, turn: Turn<T>): void {
  const nowMs = performance.now();
  const isFresh = nowMs - turn.stoodAtMs < LOOK_MS;
  if (isFresh || turn.width === 0) sendReady(deps, turn, nowMs);
  if (turn.isAsking || turn.width === 0) return;
  const isOver = deps.isStopping() || nowMs > turn.untilMs || turn.failed !== undefined;
  if (!isOver && nowMs >= turn.lookAtMs && hasRoom(turn)) void ask(turn, () => claimMore(deps, turn));
  else if (!isFresh && turn.ready.length > 0) void ask(turn, () => lookAgain(deps, turn));
}

function hasRoom<T>({ ready, sending, isKeepingUp, claimRows, width }: Turn<T>): boolean {
  return ready.length + sending === 0 || (isKeepingUp && width > 1 && ready.length <= claimRows / 2);
}

async function ask<T>(turn: Turn<T>, question: () => Promise<void>): Promise<void> {
  turn.isAsking = true;
  try {
    await question();
    turn.stoodAtMs = performance.now();
  } catch (error) {
    turn.failed = error;
    turn.width = 0;
  }
  turn.isAsking = false;
  turn.ended();
}

async function claimMore<T>({ claim, stands }: TurnDeps<T>, turn: Turn<T>): Promise<void> {
  const { rows, wanted } = await claim(turn.width > 1 ? turn.claimRows : 1);
  const nowMs = performance.now();
  for (const row of rows) turn.ready.push({ row, goodUntilMs: nowMs + READY_MS });
  if (rows.length < wanted) turn.lookAtMs = nowMs + LOOK_MS;
  else turn.claimRows = Math.min(MAX_CLAIM, 2 * turn.claimRows);
  if (rows.length === 0 && !(await stands())) turn.width = 0;
}

async function lookAgain<T>({ stands }: TurnDeps<T>, turn: Turn<T>): Promise<void> {
  if (!(await stands())) turn.width = 0;
}

/** One that has waited too long, and all of them when nothing more is sent, are left to be claimed again. */
function sendReady<T>({ send, leave }: TurnDeps<T>, turn: Turn<T>, nowMs: number): void {
  while (turn.ready.length > 0 && (turn.sending + 1 <= turn.width || turn.width === 0)) {
    const { row, goodUntilMs } = turn.ready.shift()!;
    if (nowMs >= goodUntilMs || turn.width === 0) {
      leave(row);
      continue;
    }
    turn.sending++;
    const recorded = send(row, (next) => {
      const width = turn.width === 0 ? 0 : next(turn.width);
      turn.isKeepingUp = width >= turn.width;
      turn.width = width;
      turn.sending--;
      turn.recording++;
      turn.ended();
    });
    void recorded.then(() => {
      turn.recording--;
      turn.ended();
    });
  }
}
