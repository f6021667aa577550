/** Entries with one common timeout. */
export type TimeoutQueue<T> = {
  /** The entries that were neither deleted nor expired, oldest first. */
  entries(): Iterable<T>;
  add(entry: T): void;
  delete(entry: T): void;
};

/**
 * Calls `expire` for each entry not deleted within `ms`. Entries expire in insertion order, so one timer serves all of
 * them; a timer per request cost a busy sender more than its signatures.
 */
export function createTimeoutQueue<T>(ms: number, expire: (entry: T) => void): TimeoutQueue<T> {
  const untilMs = new Map<T, number>();
  let isArmed = false;
  const look = () => {
    isArmed = false;
    const nowMs = performance.now();
    for (const [entry, endMs] of untilMs) {
      if (endMs > nowMs) {
        arm(endMs - nowMs);
        return;
      }
      untilMs.delete(entry);
      expire(entry);
    }
  };
  const arm = (delayMs: number) => {
    if (isArmed) return;
    isArmed = true;
    setTimeout(look, delayMs).unref();
  };
  return {
    entries: () => untilMs.keys(),
    add: (entry) => {
      untilMs.set(entry, performance.now() + ms);
      arm(ms);
    },
    delete: (entry) => void untilMs.delete(entry),
  };
}
