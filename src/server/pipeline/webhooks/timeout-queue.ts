/** What is under way and may take so long, all of it equally. */
export type TimeoutQueue<T> = {
  /** What was added and has neither been deleted nor taken too long, the oldest first. */
  entries(): Iterable<T>;
  add(entry: T): void;
  delete(entry: T): void;
};

/**
 * Tells `expire` of each entry that is still there after `ms`. They end in the order in which they began, so one timer
 * does for all of them; a timer each costs a busy sender more than its signatures.
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
