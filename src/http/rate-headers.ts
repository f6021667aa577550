import { Bucket, BucketSchema } from '../../gen/attestation/options/v1/options_pb.js';
import { type RateState, tightestWindow } from '../rate.js';
import { spellingOf } from '../spelling.js';

const BUCKET_NAMES: ReadonlyMap<Bucket, string> = new Map(
  [Bucket.READS, Bucket.SUBMISSIONS].map((bucket) => [bucket, spellingOf(BucketSchema, bucket)]),
);

/**
 * The rate headers of an answer, by lower-case name: `x-ratelimit-*` of the tightest window (reset in epoch seconds),
 * and `ratelimit` and `ratelimit-policy` of every window as in draft-ietf-httpapi-ratelimit-headers-10 (`t` is in
 * seconds from now). None when the call was not counted.
 */
export function rateHeaders(states: readonly RateState[], nowMs: number): [name: string, value: string][] {
  const tightest = tightestWindow(states);
  if (tightest === undefined) return [];
  return [
    ['x-ratelimit-limit', String(tightest.limit)],
    ['x-ratelimit-remaining', String(tightest.remaining)],
    ['x-ratelimit-reset', String(Math.ceil(tightest.resetAtMs / 1000))],
    ['ratelimit-policy', states.map((s) => `${policyName(s)};q=${s.limit};w=${s.windowSeconds}`).join(', ')],
    [
      'ratelimit',
      states.map((s) => `${policyName(s)};r=${s.remaining};t=${secondsUntil(s, nowMs)}`).join(', '),
    ],
  ];
}

function policyName({ bucket, windowSeconds }: RateState): string {
  return `"${BUCKET_NAMES.get(bucket) ?? 'other'}-${windowSeconds}s"`;
}

function secondsUntil({ resetAtMs }: RateState, nowMs: number): number {
  return Math.max(0, Math.ceil((resetAtMs - nowMs) / 1000));
}
