/**
 * Returns a function that calls `run` at most once per interval, on its next timer turn if the interval has passed.
 * Every call is followed by a run. Timers do not keep the process alive.
 */
export function throttle(intervalMs: number, run: () => void): () => void {
  let waiting = false;
  let lastMs = Number.NEGATIVE_INFINITY;
  return () => {
    if (waiting) return;
    const inMs = lastMs + intervalMs - performance.now();
    waiting = true;
    setTimeout(
      () => {
        waiting = false;
        lastMs = performance.now();
        run();
      },
      Math.max(0, inMs),
    ).unref();
  };
}
