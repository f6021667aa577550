import { type Performance, performance } from 'node:perf_hooks';

/** The share of its time that a saturated event loop is at work: the rest is the operating system's, with its cores busy. */
const SATURATED = 0.75;
const INTERVAL_MS = 100;

/**
 * Creates a function that returns whether this process's event loop was saturated of late: what it measures of others then is
 * mostly its own queue.
 */
export function createSaturationWatch(
  loop: Pick<Performance, 'now' | 'eventLoopUtilization'> = performance,
): () => boolean {
  let since = loop.eventLoopUtilization();
  let nextMs = loop.now() + INTERVAL_MS;
  let isSaturated = false;
  return () => {
    const nowMs = loop.now();
    if (nowMs < nextMs) return isSaturated;
    nextMs = nowMs + INTERVAL_MS;
    const now = loop.eventLoopUtilization();
    isSaturated = loop.eventLoopUtilization(now, since).utilization > SATURATED;
    since = now;
    return isSaturated;
  };
}
