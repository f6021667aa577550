import { unavailable } from '../core/errors.js';
import type { Sql } from '../store/database/connect.js';
import { countSignInAttempt, forgiveSignInAttempt } from '../store/projects/sign-in-attempts.js';

/** Bounds unsuccessful attempts to sign in, over all processes. `peer`: undefined is a trusted proxy, which is not bounded. */
export type SignInLimits = {
  /** Counts an attempt. Throws `service.unavailable` for an address with too many. */
  count(peer: string | undefined): Promise<void>;
  /** Takes back the count of an attempt that was successful, in the transaction of its effect. */
  forgive(tx: Sql, peer: string | undefined): Promise<void>;
};

const WINDOW_MS = 60_000;
const MAX_ATTEMPTS = 10;

/**
 * Ten unsuccessful attempts a minute for each address. They are counted before their secret is checked, so that many at
 * once are no more. Over all addresses the delay of wrong secrets bounds them.
 */
export function createSignInLimits(sql: Sql): SignInLimits {
  return {
    async count(peer) {
      if (peer === undefined) return;
      const { count, leftMs } = await countSignInAttempt(sql, peer, WINDOW_MS);
      if (count <= MAX_ATTEMPTS) return;
      throw unavailable(
        `signing in failed ${MAX_ATTEMPTS} times in a minute from this address; try again after Retry-After`,
        Math.max(1, Math.ceil(leftMs / 1000)),
      );
    },
    async forgive(tx, peer) {
      if (peer !== undefined) await forgiveSignInAttempt(tx, peer);
    },
  };
}
