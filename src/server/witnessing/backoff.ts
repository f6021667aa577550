/** When a failed request to a witness is repeated; jitter subtracts up to a fifth. `random` is in [0, 1). */
import { exponentialMs } from '../../protocol/backoff.js';
import { LAST_BACKOFF_MS } from '../log/store/batches.js';

const FIRST_BACKOFF_MS = 1_000;
const AFTER_DEADLINE_BACKOFF_MS = 60 * 60_000;
/** Maximum backoff of a pending request. */
const LAST_POLL_BACKOFF_MS = 10 * 60_000;

/**
 * Exponential backoff from 1 s to 30 s, one hour after the newest batch's deadline.
 *
 * @param failures consecutive failures before this one
 */
export function backoffMs(failures: number, afterDeadline: boolean, random: number): number {
  if (afterDeadline) return reduce(AFTER_DEADLINE_BACKOFF_MS, random);
  return reduce(exponentialMs(failures, { firstMs: FIRST_BACKOFF_MS, maxMs: LAST_BACKOFF_MS }), random);
}

/** Exponential backoff of a pending request, from 1 s to 10 min. */
export function pollBackoffMs(failures: number, random: number): number {
  return reduce(exponentialMs(failures, { firstMs: FIRST_BACKOFF_MS, maxMs: LAST_POLL_BACKOFF_MS }), random);
}

function reduce(ms: number, random: number): number {
  return Math.round(ms * (1 - random / 5));
}
