import { LRUCache } from 'lru-cache';
import type { Sql } from '../database/connect.js';
import { countSignInAttempt } from './sign-in-attempts.js';
import { tooManyAttempts, WINDOW_MS } from './sign-in-limits.js';

/** Bounds tokens that are not trusted, over all processes. `peer`: undefined is a trusted proxy, which is not bounded. */
export type TokenLimits = {
  /** Throws `rate_limit.exceeded` for an address that has sent too many. */
  assertOpen(peer: string | undefined): void;
  /** Counts one. */
  count(peer: string | undefined): Promise<void>;
};

const REFUSED = { what: 'tokens were not trusted', limit: 60 };
const MAX_SPENT = 10_000;

/**
 * Sixty a minute for each address. They are counted once they are found not to be trusted: the jobs of a CI behind one
 * address may all exchange theirs at once. To find out costs a query and a signature's verification.
 *
 * @param clock Unix milliseconds
 */
export function createTokenLimits(sql: Sql, clock: () => number): TokenLimits {
  const spentUntilMs = new LRUCache<string, number>({ max: MAX_SPENT });
  return {
    assertOpen(peer) {
      const untilMs = peer === undefined ? undefined : spentUntilMs.get(peer);
      if (untilMs !== undefined && clock() < untilMs) throw tooManyAttempts(REFUSED, untilMs, clock());
    },
    async count(peer) {
      if (peer === undefined) return;
      const { count, leftMs } = await countSignInAttempt(sql, `token ${peer}`, WINDOW_MS);
      if (count >= REFUSED.limit) spentUntilMs.set(peer, clock() + leftMs);
    },
  };
}
