/** Runs work, later if as much is running as may. Throws if too much is queued. */
type LimitedRunner = <T>(work: () => Promise<T>) => Promise<T>;

type Limits = {
  maxConcurrent: number;
  maxQueued: number;
  /** How long a slot rests after a work, in multiples of what the work took, 50 ms at most; 0 by default. Only the next waits. */
  rest?: number;
};

/** After a work that hung with the database, the slot is soon taken again. */
const MAX_REST_MS = 50;

/**
 * Creates a runner of at most `maxConcurrent` works at a time, in the order of their calls.
 *
 * @param refuse makes the error that is thrown when `maxQueued` works wait already
 */
export function limitConcurrency(
  { maxConcurrent, maxQueued, rest = 0 }: Limits,
  refuse: () => Error,
): LimitedRunner {
  const queue: (() => void)[] = [];
  let running = 0;
  // The next in the queue takes over the slot, so `running` falls only if the queue is empty.
  const leave = () => {
    const next = queue.shift();
    if (next === undefined) running--;
    else next();
  };
  return async (work) => {
    if (running < maxConcurrent) running++;
    else if (queue.length < maxQueued) await new Promise<void>((resolve) => queue.push(resolve));
    else throw refuse();
    const start = performance.now();
    try {
      return await work();
    } finally {
      if (rest === 0) leave();
      else setTimeout(leave, Math.min(MAX_REST_MS, rest * (performance.now() - start)));
    }
  };
}
