import { createHash, timingSafeEqual } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { unavailable } from '../../core/errors.js';

const WRONG_EVERY_MS = 100;
const MAX_WAITING = 50;
const RETRY_SECONDS = 5;

/**
 * Checks the admin token; without a configured token it rejects all. Accepts the right token at once, so that nobody can
 * lock the operator out. Rejects wrong tokens as `delayWrong` lets it.
 */
export function adminCheck(
  adminToken: string | undefined,
  delayWrong: () => Promise<false>,
): (token: string) => Promise<boolean> {
  if (adminToken === undefined) return async () => false;
  const digest = (text: string) => createHash('sha256').update(text).digest();
  const wanted = digest(adminToken);
  return async (token) => timingSafeEqual(digest(token), wanted) || delayWrong();
}

/**
 * Delays the callers of wrong secrets one by one, ten a second over all clients; beyond 50 waiting ones it throws
 * `service.unavailable`.
 */
export function createWrongDelay(): () => Promise<false> {
  let freeMs = 0;
  let waiting = 0;
  return async () => {
    if (waiting >= MAX_WAITING) throw unavailable('too many wrong admin tokens were sent', RETRY_SECONDS);
    const nowMs = performance.now();
    const dueMs = Math.max(nowMs, freeMs);
    freeMs = dueMs + WRONG_EVERY_MS;
    waiting++;
    await delay(dueMs - nowMs);
    waiting--;
    return false;
  };
}
