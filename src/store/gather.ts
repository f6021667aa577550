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
  type Waiting = { key: string; resolve: (value: V | undefined) => void; reject: (error: unknown) => void };
  let queue: Waiting[] = [];
  let inFlight = 0;
  let scheduled = false;

  const run = async (taken: Waiting[]) => {
    inFlight++;
    try {
      const found = await load([...new Set(taken.map(({ key }) => key))]);
      for (const { key, resolve } of taken) resolve(found.get(key));
    } catch (error) {
      for (const { reject } of taken) reject(error);
    }
    inFlight--;
    schedule();
  };
  const schedule = () => {
    if (scheduled || queue.length === 0 || inFlight >= maxInFlight) return;
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      while (queue.length > 0 && inFlight < maxInFlight) {
        const taken = queue.slice(0, maxKeys);
        queue = queue.slice(maxKeys);
        void run(taken);
      }
    });
  };
  return (key) =>
    new Promise((resolve, reject) => {
      queue.push({ key, resolve, reject });
      schedule();
    });
}
