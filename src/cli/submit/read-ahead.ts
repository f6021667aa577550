/**
 * Yields the items of a source, which is read on while they are not taken yet, by up to `most`. Ends the source when its
 * reader ends. Throws what it throws, after the items before that.
 */
export async function* readAhead<T>(source: AsyncIterable<T>, most: number): AsyncGenerator<T> {
  const ready: T[] = [];
  let [isDone, isLeft] = [false, false];
  let changed = () => {};
  const change = () =>
    new Promise<void>((resolve) => {
      changed = resolve;
    });
  const reading = (async () => {
    for await (const item of source) {
      ready.push(item);
      changed();
      while (ready.length >= most && !isLeft) await change();
      if (isLeft) return;
    }
  })().finally(() => {
    isDone = true;
    changed();
  });
  // It is awaited below.
  reading.catch(() => {});
  try {
    while (!isDone || ready.length > 0) {
      if (ready.length === 0) await change();
      for (let item = ready.shift(); item !== undefined; item = ready.shift()) {
        changed();
        yield item;
      }
    }
    await reading;
  } finally {
    isLeft = true;
    changed();
  }
}
