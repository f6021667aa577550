/** A pending look-up of a key, shared by its callers. */
type Waiting<V> = {
  found: Promise<V | undefined>;
  resolve: (value: V | undefined) => void;
  reject: (error: unknown) => void;
};

/**
 * Creates a loader that batches concurrent look-ups by key into one query. At most `maxInFlight` queries run at a time;
 * further keys wait for the next one.
 *
 * @param load looks up keys; the map omits keys without a value
 */
export function createBatchLoader<V>(
  load: (keys: readonly string[]) => Promise<ReadonlyMap<string, V>>,
  { maxKeys, maxInFlight }: { maxKeys: number; maxInFlight: number },
): (key: string) => Promise<V | undefined> {
  let queue = new Map<string, Waiting<V>>();
  let inFlight = 0;
  let scheduled = false;

  const run = async (taken: ReadonlyMap<string, Waiting<V>>) => {
    inFlight++;
    try {
      const found = await load([...taken.keys()]);
      for (const [key, { resolve }] of taken) resolve(found.get(key));
    } catch (error) {
      for (const { reject } of taken.values()) reject(error);
    }
    inFlight--;
    schedule();
  };
  const schedule = () => {
    if (scheduled || queue.size === 0 || inFlight >= maxInFlight) return;
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      while (queue.size > 0 && inFlight < maxInFlight) {
        const waiting = [...queue];
        queue = new Map(waiting.slice(maxKeys));
        void run(new Map(waiting.slice(0, maxKeys)));
      }
    });
  };
  return (key) => {
    const waiting = queue.get(key) ?? newWaiting<V>();
    queue.set(key, waiting);
    schedule();
    return waiting.found;
  };
}

function newWaiting<V>(): Waiting<V> {
  const waiting = {} as Waiting<V>;
  waiting.found = new Promise((resolve, reject) => Object.assign(waiting, { resolve, reject }));
  return waiting;
}
