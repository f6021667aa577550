/** Work that is done one at a time for each key, in the order of the calls. */
type Queues = {
  /** Returns the result of `work`, or undefined without calling it if too many wait for the same key. */
  run<T>(key: string, work: () => Promise<T>): Promise<T | undefined>;
};

const MAX_WAITING = 64;

/** Makes empty queues. */
export function createQueues(): Queues {
  const queues = new Map<string, { last: Promise<unknown>; waiting: number }>();
  return {
    async run(key, work) {
      const queue = queues.get(key) ?? { last: Promise.resolve(), waiting: 0 };
      if (queue.waiting >= MAX_WAITING) return undefined;
      queues.set(key, queue);
      queue.waiting += 1;
      const result = queue.last.then(work);
      queue.last = result.catch(() => undefined);
      try {
        return await result;
      } finally {
        queue.waiting -= 1;
        if (queue.waiting === 0) queues.delete(key);
      }
    },
  };
}
