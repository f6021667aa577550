import type { UsageSpan, WindowUsage } from './store/usage.js';

const HOUR = 3_600;
const DAY = 86_400;

/** The current hour and the 23 before it. */
export function lastDay(nowSecond: number): UsageSpan {
  return { windowSeconds: HOUR, since: startOf(HOUR, nowSecond) - 23 * HOUR };
}

/** The last `count` UTC days, including today. */
export function lastDays(count: number, nowSecond: number): UsageSpan {
  return { windowSeconds: DAY, since: startOf(DAY, nowSecond) - (count - 1) * DAY };
}

/** The start of the window that contains a second, both in seconds since the epoch. */
export function startOf(windowSeconds: number, second: number): number {
  return Math.floor(second / windowSeconds) * windowSeconds;
}

/** Sums the usage of a span's windows. */
export function sumUsage(
  rows: readonly WindowUsage[],
  { windowSeconds, since }: UsageSpan,
): { submissions: number; reads: number } {
  const sum = { submissions: 0, reads: 0 };
  for (const row of rows) {
    if (row.windowSeconds !== windowSeconds || row.started < since) continue;
    sum.submissions += row.submissions;
    sum.reads += row.reads;
  }
  return sum;
}
