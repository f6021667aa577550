import type { UsageSpan, WindowUsage } from '../store/projects/usage.js';

const HOUR = 3_600;
const DAY = 86_400;

/** The last 24 hours up to the one that is under way. */
export function lastDay(nowSecond: number): UsageSpan {
  return { windowSeconds: HOUR, since: startOf(HOUR, nowSecond) - 23 * HOUR };
}

/** The last `count` UTC days, today included. */
export function lastDays(count: number, nowSecond: number): UsageSpan {
  return { windowSeconds: DAY, since: startOf(DAY, nowSecond) - (count - 1) * DAY };
}

/** When the window began that a second is in. */
export function startOf(windowSeconds: number, second: number): number {
  return Math.floor(second / windowSeconds) * windowSeconds;
}

/** What was used in the windows of one span together. */
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
