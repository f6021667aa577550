/**
 * Runs work for a client, or queues it while `maxConcurrent` works are running. Throws if the queue is full. `peer` is the
 * address that the work counts for; clients without one share an entry.
 */
type LimitedRunner = <T>(work: () => Promise<T>, peer?: string) => Promise<T>;

type Limits = {
  maxConcurrent: number;
  maxQueued: number;
  /** Pause of a slot after a work, in multiples of the work's duration, at most 50 ms; 0 by default. */
  rest?: number;
};

/** Bounds the pause after a work that hung with the database. */
const MAX_REST_MS = 50;

/**
 * Creates a runner of at most `maxConcurrent` works at a time. Peers take turns, each with its works in the order of their
 * calls. Beyond `maxQueued` works the newest of the peer with the most is rejected, so that no peer fills the queue.
 *
 * @param refuse makes the error of a rejected work
 */
export function limitConcurrency(
  { maxConcurrent, maxQueued, rest = 0 }: Limits,
  refuse: () => Error,
): LimitedRunner {
  const queue = createFairQueue(maxQueued, refuse);
  let running = 0;
  // The next in the queue takes over the slot, so `running` falls only if the queue is empty.
  const leave = () => {
    const next = queue.shift();
    if (next === undefined) running--;
    else next();
  };
  return async (work, peer = '') => {
    if (running < maxConcurrent) running++;
    else await queue.wait(peer);
    const start = performance.now();
    try {
      return await work();
    } finally {
      if (rest === 0) leave();
      else setTimeout(leave, Math.min(MAX_REST_MS, rest * (performance.now() - start)));
    }
  };
}

type Waiting = { start: () => void; refuse: (error: Error) => void };

/** A bounded queue whose peers take turns. */
function createFairQueue(maxQueued: number, refuse: () => Error) {
  /** In the order of their next turns. */
  const queues = new Map<string, Waiting[]>();
  let queued = 0;
  const longest = (): Waiting[] => {
    let found: Waiting[] = [];
    for (const queue of queues.values()) if (queue.length > found.length) found = queue;
    return found;
  };
  return {
    /** Resolves at the peer's turn, or rejects if there is no room. */
    wait: (peer: string) =>
      new Promise<void>((start, reject) => {
        const own = queues.get(peer) ?? [];
        if (queued >= maxQueued) {
          const most = longest();
          if (own.length + 1 >= most.length) return reject(refuse());
          most.pop()?.refuse(refuse());
          queued--;
        }
        own.push({ start, refuse: reject });
        queues.set(peer, own);
        queued++;
      }),
    /** The start of the next work. */
    shift(): (() => void) | undefined {
      const [first] = queues;
      if (first === undefined) return undefined;
      const [peer, queue] = first;
      const next = queue.shift();
      queued--;
      queues.delete(peer);
      if (queue.length > 0) queues.set(peer, queue);
      return next?.start;
    },
  };
}
