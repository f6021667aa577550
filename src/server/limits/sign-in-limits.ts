import { LRUCache } from 'lru-cache';
import { unavailable } from '../core/errors.js';

/** Bounds failed attempts to sign in. */
export type SignInLimits = {
  /** Throws `service.unavailable` for an address with too many failures; undefined is a trusted proxy. */
  assertOpen(peer: string | undefined): void;
  /** Records a failure. */
  recordFailure(peer: string | undefined): void;
};

const WINDOW_MS = 60_000;
const MAX_FAILURES = 10;
const MAX_PEERS = 10_000;

/** Ten failures a minute for each address. `nowMs`: monotonic. What bounds them in total is the delay of wrong secrets. */
export function createSignInLimits(nowMs: () => number): SignInLimits {
  const failures = new LRUCache<string, { count: number; untilMs: number }>({ max: MAX_PEERS });
  const find = (peer: string | undefined) => {
    const found = peer === undefined ? undefined : failures.get(peer);
    return found === undefined || found.untilMs <= nowMs() ? undefined : found;
  };
  return {
    assertOpen(peer) {
      const found = find(peer);
      if (found === undefined || found.count < MAX_FAILURES) return;
      throw unavailable(
        `signing in failed ${MAX_FAILURES} times in a minute from this address; try again after Retry-After`,
        Math.max(1, Math.ceil((found.untilMs - nowMs()) / 1000)),
      );
    },
    recordFailure(peer) {
      if (peer === undefined) return;
      const found = find(peer) ?? { count: 0, untilMs: nowMs() + WINDOW_MS };
      failures.set(peer, { ...found, count: found.count + 1 });
    },
  };
}
