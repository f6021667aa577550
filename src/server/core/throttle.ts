/** Runs now, and while calls keep coming once per interval; the last call is always followed by a run. */
export function atMostEvery(intervalMs: number, run: () => void): () => void {
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
