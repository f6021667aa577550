import { setImmediate as nextTurn } from 'node:timers/promises';

/** Runs work one at a time, in the order of the calls, also after work that has failed. */
export type SerialQueue = <T>(work: () => Promise<T>) => Promise<T>;

/** Creates an empty queue. */
export function createSerialQueue(): SerialQueue {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const result = last.then(work);
    last = result.catch(() => {});
    return result;
  };
}

/**
 * Creates a queue for work that holds the event loop for milliseconds. Each call resolves in a turn of its own, first in,
 * first out, so that other work, health checks among it, runs between two of them.
 */
export function createYieldQueue(): () => Promise<void> {
  const enqueue = createSerialQueue();
  return () => enqueue(() => nextTurn());
}
