/** When a failed request to a witness is repeated. */

const FIRST_BACKOFF_MS = 1_000;
/** Maximum backoff of a failing witness while a batch within its deadline waits for it. */
export const LAST_BACKOFF_MS = 30_000;
const AFTER_DEADLINE_BACKOFF_MS = 60 * 60_000;
/** Maximum backoff of a pending request. */
const LAST_POLL_BACKOFF_MS = 10 * 60_000;

/**
 * Exponential backoff from 1 s to 30 s, one hour after the newest batch's deadline; jitter subtracts up to a fifth.
 *
 * @param failures consecutive failures before this one
 * @param random in [0, 1)
 */
export function backoffMs(failures: number, afterDeadline: boolean, random: number): number {
  return afterDeadline
    ? withJitter(AFTER_DEADLINE_BACKOFF_MS, random)
    : exponentialMs(failures, LAST_BACKOFF_MS, random);
}

/** Exponential backoff of a pending request, from 1 s to 10 min, with the same jitter. */
export function pollBackoffMs(failures: number, random: number): number {
  return exponentialMs(failures, LAST_POLL_BACKOFF_MS, random);
}

function exponentialMs(failures: number, longestMs: number, random: number): number {
  return withJitter(Math.min(longestMs, FIRST_BACKOFF_MS * 2 ** Math.min(failures, 20)), random);
}

function withJitter(ms: number, random: number): number {
  return Math.round(ms * (1 - random / 5));
}
