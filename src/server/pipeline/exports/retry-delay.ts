const FIRST_MS = 10_000;
const LAST_MS = 60 * 60_000;

/**
 * Milliseconds until the next attempt: from 10 s, doubled with each failure up to one hour, with a jitter of a fifth; or
 * the destination's `Retry-After` if it is longer, up to one hour.
 *
 * @param failures consecutive failures before this one
 * @param random in [0, 1)
 */
export function exportRetryDelayMs(failures: number, random: number, retryAfterMs = 0): number {
  const base = Math.min(LAST_MS, FIRST_MS * 2 ** Math.min(failures, 20));
  const delay = Math.min(LAST_MS, base * (0.8 + 0.4 * random));
  return Math.round(Math.max(delay, Math.min(retryAfterMs, LAST_MS)));
}
