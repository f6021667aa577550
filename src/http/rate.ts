import { Bucket, type MethodRules } from '../../gen/attestation/options/v1/options_pb.js';
import { ErrorCode } from '../../gen/attestation/v1/errors_pb.js';
import type { Call } from '../call.js';
import { ApiError } from '../errors.js';
import type { Principal } from '../principal.js';
import { type RateState, rateLimitExceeded } from '../rate.js';
import { andThen, recover, type Soon } from '../soon.js';

/** Who counts calls. */
export type RateLimits = {
  /** Counts one read; throws the error of a spent window. */
  takeRead: (principal: Principal) => Soon<RateState>;
  /** The windows of the submissions bucket as last known, without counting; the write counts exactly. */
  peekSubmissions: (principal: Principal, nowMs: number) => Soon<readonly RateState[]>;
};

/** Counts the call in its bucket, or refuses it where the window is known to be spent. */
export function countCall(deps: RateLimits, call: Call, { bucket }: MethodRules, nowMs: number): Soon<void> {
  const { principal } = call;
  if (principal === undefined) return;
  if (bucket === Bucket.READS) return countRead(deps, call, principal, nowMs);
  if (bucket !== Bucket.SUBMISSIONS) return;
  return andThen(deps.peekSubmissions(principal, nowMs), (states) => {
    call.rateStates = states;
    const spent = states.filter(({ remaining }) => remaining <= 0).at(-1);
    if (spent !== undefined) throw rateLimitExceeded(spent, nowMs);
  });
}

function countRead(deps: RateLimits, call: Call, principal: Principal, nowMs: number): Soon<void> {
  const count = () =>
    andThen(deps.takeRead(principal), (state) => {
      call.rateStates = [state];
    });
  return recover(count, (error) => {
    if (isSpentWindow(error)) call.rateStates = [spentReadWindow(principal, error, nowMs)];
    throw error;
  });
}

/** Whether a call was refused because a window is spent. */
export function isSpentWindow(error: unknown): error is ApiError {
  return error instanceof ApiError && error.code === ErrorCode.RATE_LIMIT_EXCEEDED;
}

/** The window that the error is about: a refused call's headers speak of it like an admitted one's. */
function spentReadWindow({ readWindow }: Principal, { details }: ApiError, nowMs: number): RateState {
  const resetAtMs = typeof details.reset === 'string' ? Date.parse(details.reset) : nowMs;
  return { bucket: Bucket.READS, ...readWindow, remaining: 0, resetAtMs };
}
