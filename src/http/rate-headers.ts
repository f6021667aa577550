import { Bucket, BucketSchema } from '../../gen/attestation/options/v1/options_pb.js';
import type { Call } from '../call.js';
import { type RateState, tightestWindow } from '../rate.js';
import { spellingOf } from '../spelling.js';

const BUCKET_NAMES: ReadonlyMap<Bucket, string> = new Map(
  [Bucket.READS, Bucket.SUBMISSIONS].map((bucket) => [bucket, spellingOf(BucketSchema, bucket)]),
);

/**
 * Puts the windows that a call was counted in into the headers of its answer: `x-ratelimit-*` of the tightest window
 * (reset in epoch seconds), and `ratelimit` and `ratelimit-policy` of every window as in
 * draft-ietf-httpapi-ratelimit-headers-10 (`t` is in seconds from now). None when the call was not counted.
 */
export function writeRateHeaders({ rateStates, responseHeaders }: RateHeadersCall, nowMs: number): void {
  const tightest = tightestWindow(rateStates);
  if (tightest === undefined) return;
  let policies = '';
  let windows = '';
  for (const state of rateStates) {
    const separator = policies === '' ? '' : ', ';
    const name = `${separator}"${BUCKET_NAMES.get(state.bucket) ?? 'other'}-${state.windowSeconds}s"`;
    policies += `${name};q=${state.limit};w=${state.windowSeconds}`;
    windows += `${name};r=${state.remaining};t=${secondsUntil(state, nowMs)}`;
  }
  responseHeaders.set('x-ratelimit-limit', String(tightest.limit));
  responseHeaders.set('x-ratelimit-remaining', String(tightest.remaining));
  responseHeaders.set('x-ratelimit-reset', String(Math.ceil(tightest.resetAtMs / 1000)));
  responseHeaders.set('ratelimit-policy', policies);
  responseHeaders.set('ratelimit', windows);
}

type RateHeadersCall = Pick<Call, 'rateStates' | 'responseHeaders'>;

function secondsUntil({ resetAtMs }: RateState, nowMs: number): number {
  return Math.max(0, Math.ceil((resetAtMs - nowMs) / 1000));
}
