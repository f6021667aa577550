import { type Bucket, BucketSchema } from '../../../gen/attestation/options/v1/options_pb.js';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { enumName } from '../../protocol/enum-names.js';
import { ApiError } from './errors.js';

/** A rate window of an API key after a call, for the response's `X-RateLimit-*` headers. */
export type RateState = {
  bucket: Bucket;
  windowSeconds: number;
  limit: number;
  remaining: number;
  /** When the next window starts, Unix milliseconds. */
  resetAtMs: number;
};

/** Returns the window with the fewest calls remaining; of equal ones the longest. Undefined if there are none. */
export function tightestWindow(states: readonly RateState[]): RateState | undefined {
  let tightest = states[0];
  for (const state of states) if (tightest !== undefined && isTighter(state, tightest)) tightest = state;
  return tightest;
}

function isTighter(a: RateState, b: RateState): boolean {
  return a.remaining < b.remaining || (a.remaining === b.remaining && a.windowSeconds > b.windowSeconds);
}

/** Returns the error of a spent window: 429 with the window in `details` and `Retry-After`. */
export function rateLimitExceeded(spent: RateState, nowMs: number): ApiError {
  const bucket = enumName(BucketSchema, spent.bucket);
  return new ApiError(
    ErrorCode.RATE_LIMIT_EXCEEDED,
    `the limit of ${spent.limit} ${bucket} in ${spent.windowSeconds} s is reached; try again after Retry-After`,
    {
      bucket,
      window: spent.windowSeconds,
      limit: spent.limit,
      reset: new Date(spent.resetAtMs).toISOString(),
    },
    { 'retry-after': String(Math.max(1, Math.ceil((spent.resetAtMs - nowMs) / 1000))) },
  );
}
