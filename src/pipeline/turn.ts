/** How the width of what is sent at a time changes after an attempt. */
export type Width = (width: number) => number;

/** What a turn works with. */
export type TurnDeps<T> = {
  /** Claims up to `most` that are due; fewer than `wanted` means that no more are, for now. */
  claim: (most: number) => Promise<{ rows: T[]; wanted: number }>;
  /** Sends one: calls `sent` when the endpoint has had its say, and resolves when that is recorded. Never rejects. */
  send: (row: T, sent: (next: Width) => void) => Promise<void>;
  /** Takes back one that was claimed and will not be sent. */
  leave: (row: T) => void;
  isStopping: () => boolean;
};

/** How long one subscription is worked on before others get their turn. */
const TURN_MS = 10_000;
/** While attempts are under way, what else is due is looked for this often. */
const LOOK_MS = 1_000;
/** So long after its claim one is still sent: its attempt must end before it is due again. */
const READY_MS = 40_000;

type Turn<T> = {
  width: number;
  claiming: boolean;
  /** Claimed, and waiting for their request. */
  ready: { row: T; goodUntilMs: number }[];
  sending: number;
  recording: number;
  /** When to look for more that is due. */
  lookAtMs: number;
  failed: unknown;
  /** Called when anything ends. */
  ended: () => void;
};

/**
 * Sends what is due for a while: `width` at a time, which each attempt may change. As many again are claimed ahead, so
 * that no request waits for a claim. Resolves when all that was claimed is sent and recorded; throws when a claim failed.
 */
export async function takeTurn<T>(deps: TurnDeps<T>, width: number): Promise<void> {
  const turn: Turn<T> = {
    width,
    claiming: false,
    ready: [],
    sending: 0,
    recording: 0,
    lookAtMs: 0,
    failed: undefined,
    ended: () => {},
  };
  const untilMs = performance.now() + TURN_MS;
  for (;;) {
    sendReady(deps, turn);
    const nowMs = performance.now();
    const isOver = deps.isStopping() || nowMs > untilMs || turn.failed !== undefined;
    if (!isOver && nowMs >= turn.lookAtMs && hasRoom(turn)) void claimMore(deps, turn);
    if (!turn.claiming && turn.ready.length + turn.sending + turn.recording === 0) break;
    await anEnd(turn, LOOK_MS);
  }
  if (turn.failed !== undefined) throw turn.failed;
}

/** Claims are one width ahead; while the endpoint fails, and gets one request at a time, not at all. */
function hasRoom<T>({ claiming, ready, sending, width }: Turn<T>): boolean {
  return !claiming && ready.length + sending <= (width > 1 ? width : 0);
}

async function claimMore<T>({ claim }: TurnDeps<T>, turn: Turn<T>): Promise<void> {
  turn.claiming = true;
  const goodUntilMs = performance.now() + READY_MS;
  try {
    const { rows, wanted } = await claim(turn.width);
    for (const row of rows) turn.ready.push({ row, goodUntilMs });
    if (rows.length < wanted) turn.lookAtMs = performance.now() + LOOK_MS;
  } catch (error) {
    turn.failed = error;
  }
  turn.claiming = false;
  turn.ended();
}

/** One that has waited too long is left to be claimed again. */
function sendReady<T>({ send, leave }: TurnDeps<T>, turn: Turn<T>): void {
  const nowMs = performance.now();
  while (turn.ready.length > 0 && turn.sending < turn.width) {
    const { row, goodUntilMs } = turn.ready.shift()!;
    if (nowMs >= goodUntilMs) {
      leave(row);
      continue;
    }
    turn.sending++;
    const recorded = send(row, (next) => {
      turn.width = next(turn.width);
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

/** Waits until anything ends, or `ms`. */
function anEnd<T>(turn: Turn<T>, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    turn.ended = () => {
      clearTimeout(timer);
      resolve();
    };
  });
}
