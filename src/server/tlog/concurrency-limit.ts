import { unavailable } from '../core/errors.js';

/** Runs work in turn: so many at once, so many more waiting; throws `service.unavailable` when the queue is full. */
export type ConcurrencyLimit = <T>(work: () => Promise<T>) => Promise<T>;

const RETRY_SECONDS = 1;

/** A queue of its own. Work is run in the order it came. */
export function createConcurrencyLimit({
  atOnce,
  waiting,
}: {
  atOnce: number;
  waiting: number;
}): ConcurrencyLimit {
  const queue: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running < atOnce) running++;
    else if (queue.length < waiting) await new Promise<void>((resolve) => queue.push(resolve));
    else throw unavailable('too many tiles are asked for at once', RETRY_SECONDS);
    try {
      return await work();
    } finally {
      // The turn is handed on: it does not end before there is nobody to take it.
      const next = queue.shift();
      if (next === undefined) running--;
      else next();
    }
  };
}
