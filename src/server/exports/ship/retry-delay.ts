import { exponentialMs, withJitter } from '../../../protocol/backoff.js';

const SCHEDULE = { firstMs: 10_000, maxMs: 60 * 60_000 };

/**
 * Milliseconds until the next attempt: from 10 s, doubled with each failure up to one hour, with a jitter of a fifth; or
 * the destination's `Retry-After` if it is longer, up to one hour.
 *
 * @param failures consecutive failures before this one
 * @param random in [0, 1)
 */
export function exportRetryDelayMs(failures: number, random: number, retryAfterMs = 0): number {
  const delayMs = withJitter(exponentialMs(failures, SCHEDULE), random);
  return Math.round(Math.min(SCHEDULE.maxMs, Math.max(delayMs, retryAfterMs)));
}
