import { withJitter } from '../../../protocol/backoff.js';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** Delay after each failed attempt; after the last one the delivery has failed. */
const STEPS_MS = [
  5 * SECOND_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  14 * HOUR_MS,
  20 * HOUR_MS,
  24 * HOUR_MS,
];

/**
 * Milliseconds until the next attempt: the step's delay with a jitter of a fifth, or the receiver's `Retry-After` up to
 * twice the delay. Undefined after the last attempt.
 *
 * @param step failed attempts of the schedule before this one
 * @param random in [0, 1)
 * @param retryAfterMs the response's `Retry-After`, if any
 */
export function retryDelayMs(step: number, random: number, retryAfterMs = 0): number | undefined {
  const base = STEPS_MS[step];
  if (base === undefined) return undefined;
  return Math.round(Math.max(withJitter(base, random), Math.min(retryAfterMs, 2 * base)));
}
