/**
 * Maps items with at most `concurrency` calls of `work` at a time and yields the results in order. `work` must not
 * reject. Starts no item more than `concurrency` ahead of the next result, so ending the iteration ends the work.
 */
export async function* mapConcurrent<T, R>(
  items: Iterable<T> | AsyncIterable<T>,
  concurrency: number,
  work: (item: T) => Promise<R>,
): AsyncGenerator<R> {
  const pending: Promise<R>[] = [];
  for await (const item of items) {
    pending.push(work(item));
    if (pending.length === concurrency) yield await pending.shift()!;
  }
  while (pending.length > 0) yield await pending.shift()!;
}
