/** A key that is to be looked up, for everybody who waits for it. */
type Waiting<V> = {
  found: Promise<V | undefined>;
  resolve: (value: V | undefined) => void;
  reject: (error: unknown) => void;
};

/**
 * Gathers look-ups by key that are asked for at the same time into one query, so that many concurrent reads cost few
 * round trips. While `maxInFlight` queries are under way, further keys wait for the next one.
 *
 * @param load finds the values of some keys; keys without a value are left out of the map
 */
export function gather<V>(
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
