/** Runs work, later if as much is running as may. Throws if too much is queued. */
type LimitedRunner = <T>(work: () => Promise<T>) => Promise<T>;

/**
 * Creates a runner of at most `maxConcurrent` works at a time, in the order of their calls.
 *
 * @param refuse makes the error that is thrown when `maxQueued` works wait already
 */
export function limitConcurrency(
  { maxConcurrent, maxQueued }: { maxConcurrent: number; maxQueued: number },
  refuse: () => Error,
): LimitedRunner {
  const queue: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running < maxConcurrent) running++;
    else if (queue.length < maxQueued) await new Promise<void>((resolve) => queue.push(resolve));
    else throw refuse();
    try {
      return await work();
    } finally {
      // The next in the queue takes over the slot, so `running` falls only if the queue is empty.
      const next = queue.shift();
      if (next === undefined) running--;
      else next();
    }
  };
}
