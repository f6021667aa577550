import { LRUCache } from 'lru-cache';
import { Bucket, BucketSchema } from '../../../gen/attestation/options/v1/options_pb.js';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { enumName } from '../../protocol/enum-names.js';
import { ApiError } from '../core/errors.js';
import type { Sql } from '../database/connect.js';
import { countSignInAttempt, forgiveSignInAttempt } from './sign-in-attempts.js';

/** Bounds unsuccessful attempts to sign in, over all processes. `peer`: undefined is a trusted proxy, which is not bounded. */
export type SignInLimits = {
  /** Counts an attempt. Throws `rate_limit.exceeded` for an address with too many. */
  count(peer: string | undefined): Promise<void>;
  /** Takes back the count of an attempt that was successful, in the transaction of its effect. */
  forgive(tx: Sql, peer: string | undefined): Promise<void>;
};

/** The window of attempts. */
export const WINDOW_MS = 60_000;
const MAX_ATTEMPTS = 10;
const FAILED = { what: 'signing in failed', limit: MAX_ATTEMPTS };
const MAX_REFUSED = 10_000;

/**
 * Ten unsuccessful attempts a minute for each address. They are counted before their secret is checked, so that many at
 * once are no more. Over all addresses the delay of wrong secrets bounds them. An address that was refused is refused from
 * memory until its window ends.
 *
 * @param clock Unix milliseconds
 */
export function createSignInLimits(sql: Sql, clock: () => number): SignInLimits {
  const refusedUntilMs = new LRUCache<string, number>({ max: MAX_REFUSED });
  return {
    async count(peer) {
      if (peer === undefined) return;
      const untilMs = refusedUntilMs.get(peer);
      if (untilMs !== undefined && clock() < untilMs) throw tooManyAttempts(FAILED, untilMs, clock());
      const { count, leftMs } = await countSignInAttempt(sql, peer, WINDOW_MS);
      if (count <= MAX_ATTEMPTS) return;
      const nowMs = clock();
      refusedUntilMs.set(peer, nowMs + leftMs);
      throw tooManyAttempts(FAILED, nowMs + leftMs, nowMs);
    },
    async forgive(tx, peer) {
      if (peer !== undefined) await forgiveSignInAttempt(tx, peer);
    },
  };
}

/** The error of an address with too many attempts in its window, which ends at `untilMs`. Times in Unix milliseconds. */
export function tooManyAttempts(
  { what, limit }: { what: string; limit: number },
  untilMs: number,
  nowMs: number,
): ApiError {
  const seconds = Math.max(1, Math.ceil((untilMs - nowMs) / 1000));
  return new ApiError(
    ErrorCode.RATE_LIMIT_EXCEEDED,
    `${what} ${limit} times in a minute from this address; try again in ${seconds} s`,
    {
      bucket: enumName(BucketSchema, Bucket.READS),
      window: WINDOW_MS / 1000,
      limit,
      reset: new Date(untilMs).toISOString(),
    },
    { 'retry-after': String(seconds) },
  );
}
