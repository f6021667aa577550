/**
 * Works on items, at most `concurrency` at a time, and yields the results in the order of the items. `work` must not
 * reject: its failures are results too. An item is begun only when its turn is at most `concurrency` away, so that
 * whoever stops reading stops the work.
 */
export async function* mapConcurrent<T, R>(
  items: Iterable<T>,
  concurrency: number,
  work: (item: T) => Promise<R>,
): AsyncGenerator<R> {
  const pending: Promise<R>[] = [];
  for (const item of items) {
    pending.push(work(item));
    if (pending.length === concurrency) yield await pending.shift()!;
  }
  while (pending.length > 0) yield await pending.shift()!;
}
