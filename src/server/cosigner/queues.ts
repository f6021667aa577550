import { createSerialQueue, type SerialQueue } from '../core/serial-queue.js';

/** Serial queues by key. */
type Queues = {
  /** Returns the result of `work`, or undefined without calling it if too many wait for the same key. */
  run<T>(key: string, work: () => Promise<T>): Promise<T | undefined>;
};

const MAX_WAITING = 64;

/** Creates empty queues. */
export function createQueues(): Queues {
  const queues = new Map<string, { enqueue: SerialQueue; waiting: number }>();
  return {
    async run(key, work) {
      const queue = queues.get(key) ?? { enqueue: createSerialQueue(), waiting: 0 };
      if (queue.waiting >= MAX_WAITING) return undefined;
      queues.set(key, queue);
      queue.waiting += 1;
      try {
        return await queue.enqueue(work);
      } finally {
        queue.waiting -= 1;
        if (queue.waiting === 0) queues.delete(key);
      }
    },
  };
}
