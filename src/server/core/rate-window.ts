import { Bucket, BucketSchema } from '../../../gen/attestation/options/v1/options_pb.js';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { enumName } from '../../protocol/enum-names.js';
import { ApiError } from './errors.js';
import type { Principal } from './principal.js';

/** A rate window of an API key or project after a call. Those of keys are in the response's `X-RateLimit-*` headers. */
export type RateState = {
  bucket: Bucket;
  windowSeconds: number;
  limit: number;
  remaining: number;
  /** When the next window starts, Unix milliseconds. */
  resetAtMs: number;
  /** Whether it is a window of the project, over all its API keys. */
  ofProject?: boolean;
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
  const retrySeconds = Math.max(1, Math.ceil((spent.resetAtMs - nowMs) / 1000));
  const whose = spent.ofProject ? "the project's limit, over all its API keys," : 'the limit';
  return new ApiError(
    ErrorCode.RATE_LIMIT_EXCEEDED,
    `${whose} of ${spent.limit} ${bucket} in ${spent.windowSeconds} s is reached; try again in ${retrySeconds} s`,
    {
      bucket,
      window: spent.windowSeconds,
      limit: spent.limit,
      reset: new Date(spent.resetAtMs).toISOString(),
      ...(spent.ofProject && { of_project: true }),
    },
    { 'retry-after': String(retrySeconds) },
  );
}

/** Requests that an API key has made in its current windows; `second` is the current second since the epoch. */
export type WindowUse = { second: number; nSecond: number; nHour: number; nDay: number };

const HOUR = 3_600;
const DAY = 86_400;

/**
 * The state of each window of the submissions bucket: what remains and when it resets. Windows are aligned to the
 * database's second, hour and UTC day. A window that ended before `nowSecond` counts as unused.
 */
export function submissionWindowStates(
  principal: Pick<Principal, 'submissionWindows'>,
  use: WindowUse | undefined,
  nowSecond: number,
): RateState[] {
  return principal.submissionWindows.map(({ windowSeconds, limit }) => {
    const used = countIn(use, windowSeconds, nowSecond);
    return stateOf(Bucket.SUBMISSIONS, windowSeconds, limit, used, nowSecond);
  });
}

/** The longest window of the project's submissions that is spent at a time; undefined if there is none. */
export function spentCeiling(
  { ceiling }: Pick<Principal, 'ceiling'>,
  use: WindowUse | undefined,
  nowSecond: number,
): RateState | undefined {
  if (ceiling === undefined) return undefined;
  const spent = submissionWindowStates(ceiling, use, nowSecond).findLast(({ remaining }) => remaining <= 0);
  return spent && { ...spent, ofProject: true };
}

/** The state of the window of the reads bucket. */
export function readWindowState(
  principal: Pick<Principal, 'readWindow'>,
  use: WindowUse | undefined,
  nowSecond: number,
): RateState {
  const { windowSeconds, limit } = principal.readWindow;
  return stateOf(Bucket.READS, windowSeconds, limit, countIn(use, windowSeconds, nowSecond), nowSecond);
}

function countIn(use: WindowUse | undefined, windowSeconds: number, nowSecond: number): number {
  if (use === undefined || Math.floor(use.second / windowSeconds) < Math.floor(nowSecond / windowSeconds))
    return 0;
  if (windowSeconds === DAY) return use.nDay;
  return windowSeconds === HOUR ? use.nHour : use.nSecond;
}

function stateOf(
  bucket: Bucket,
  windowSeconds: number,
  limit: number,
  used: number,
  nowSecond: number,
): RateState {
  const resetAtMs = (Math.floor(nowSecond / windowSeconds) + 1) * windowSeconds * 1000;
  return { bucket, windowSeconds, limit, remaining: Math.max(0, limit - used), resetAtMs };
}
