const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** How long after each failure a delivery is tried again; after the last it has failed. */
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
 * When to try a delivery again, in milliseconds: the step's time give or take a fifth, or as long as the receiver
 * asked for, up to twice the step. Undefined when that was the last attempt.
 *
 * @param step how many attempts of the schedule failed before this one
 * @param random in [0, 1)
 * @param retryAfterMs the answer's `Retry-After`, when it had one
 */
export function retryDelayMs(step: number, random: number, retryAfterMs = 0): number | undefined {
  const base = STEPS_MS[step];
  if (base === undefined) return undefined;
  return Math.round(Math.max(base * (0.8 + 0.4 * random), Math.min(retryAfterMs, 2 * base)));
}
