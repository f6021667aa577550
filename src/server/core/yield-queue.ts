import { setImmediate as nextTurn } from 'node:timers/promises';

/**
 * Creates a queue for work that holds the event loop for milliseconds. Each call resolves in a turn of its own, first in,
 * first out, so that other work, health checks among it, runs between two of them.
 */
export function createYieldQueue(): () => Promise<void> {
  let last: Promise<unknown> = Promise.resolve();
  return async () => {
    const mine = last.then(() => nextTurn());
    last = mine;
    await mine;
  };
}
