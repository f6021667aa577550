import { Bucket, BucketSchema } from '../../../../gen/attestation/options/v1/options_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import { type RateState, tightestWindow } from '../../core/rate-window.js';

const BUCKET_NAMES: ReadonlyMap<Bucket, string> = new Map(
  [Bucket.READS, Bucket.SUBMISSIONS].map((bucket) => [bucket, enumName(BucketSchema, bucket)]),
);

/**
 * The headers that tell of the windows a call was counted in, names and values in turns: `x-ratelimit-*` of the tightest
 * window (reset in epoch seconds), and `ratelimit` and `ratelimit-policy` of every window as in
 * draft-ietf-httpapi-ratelimit-headers-10 (`t` is in seconds from now). None when the call was not counted.
 */
export function rateHeaders(rateStates: readonly RateState[], nowMs: number): string[] {
  const tightest = tightestWindow(rateStates);
  if (tightest === undefined) return [];
  let policies = '';
  let windows = '';
  for (const state of rateStates) {
    const separator = policies === '' ? '' : ', ';
    const name = `${separator}"${BUCKET_NAMES.get(state.bucket) ?? 'other'}-${state.windowSeconds}s"`;
    policies += `${name};q=${state.limit};w=${state.windowSeconds}`;
    windows += `${name};r=${state.remaining};t=${secondsUntil(state, nowMs)}`;
  }
  return [
    'x-ratelimit-limit',
    String(tightest.limit),
    'x-ratelimit-remaining',
    String(tightest.remaining),
    'x-ratelimit-reset',
    String(Math.ceil(tightest.resetAtMs / 1000)),
    'ratelimit-policy',
    policies,
    'ratelimit',
    windows,
  ];
}

function secondsUntil({ resetAtMs }: RateState, nowMs: number): number {
  return Math.max(0, Math.ceil((resetAtMs - nowMs) / 1000));
}
