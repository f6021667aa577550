import { Bucket, BucketSchema } from '../../../../gen/attestation/options/v1/options_pb.js';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import type { Call } from '../../core/call.js';
import { ApiError } from '../../core/errors.js';
import type { Lookup } from '../../core/lookup.js';
import type { Principal } from '../../core/principal.js';
import { type RateState, rateLimitExceeded, tightestWindow } from '../../core/rate-window.js';
import { findIdempotencyKey } from './new-call.js';

/** Counts calls against rate limits. */
export type RateLimits = {
  /** Counts `count` reads; throws `rate_limit.exceeded` if the window is exhausted. */
  takeReads: (principal: Principal, count: number) => Promise<RateState>;
  /** Counts `count` reads after the response. If the window is exhausted, `findOverdrawn` returns it from then on. */
  chargeReads: (principal: Principal, count: number) => void;
  /** The read window, if it is overdrawn. */
  findOverdrawn: (principal: Principal) => RateState | undefined;
  /** The windows of the submissions bucket as last known, without counting; the write counts exactly. */
  submissionWindows: Lookup<Principal, readonly RateState[]>;
  /** The window of the submissions bucket of the key's project that is spent as last known. */
  findSpentCeiling: (principal: Principal) => RateState | undefined;
  /** Whether a request with this idempotency key was made before. */
  hasClaim: (principal: Principal, idempotencyKey: string) => Promise<boolean>;
};

/** Counts the call in its bucket; throws `rate_limit.exceeded` if the window is known to be spent. */
export async function countCall(deps: RateLimits, call: Call, nowMs: number): Promise<void> {
  const { principal, rules } = call;
  if (principal === undefined) return;
  // The admin API has no buckets, but a session of a project has a limit there as well.
  const isAdminRead = rules.bucket === Bucket.UNSPECIFIED && call.session !== undefined;
  if (rules.bucket === Bucket.READS || isAdminRead)
    await countReads(deps, call, principal, rules.cost || 1, nowMs);
  if (rules.bucket !== Bucket.SUBMISSIONS) return;
  const overdrawn = deps.findOverdrawn(principal);
  if (overdrawn !== undefined) {
    call.rateStates = [spentReadWindow(principal, overdrawn.resetAtMs)];
    refuse(call, overdrawn, nowMs);
  }
  const { submissionWindows } = deps;
  const states = submissionWindows.peek(principal) ?? (await submissionWindows.get(principal));
  call.rateStates = states;
  const spent = states.findLast(({ remaining }) => remaining <= 0) ?? deps.findSpentCeiling(principal);
  if (spent !== undefined) await admitReplay(deps, call, principal, { spent, nowMs });
}

/**
 * A rejected call counts as one read for each started block of this size in its body: invalid metadata of 64 KiB takes up
 * to 22 ms of CPU, as 60 to 200 reads do.
 */
const BYTES_OF_A_READ = 1024;

/**
 * Counts what is due of a call beyond what was counted when it was admitted; of a rejected one that is one read for each
 * started KiB of its body. To be called once, when the call is over.
 */
export function countRest({ chargeReads }: RateLimits, { principal, rules, tally, bodyBytes }: Call): void {
  if (principal === undefined || rules.bucket === Bucket.UNSPECIFIED) return;
  const due = tally.due ?? Math.max(1, Math.ceil(bodyBytes / BYTES_OF_A_READ));
  if (due > tally.taken) chargeReads(principal, due - tally.taken);
}

/** A refusal without any other work is not counted. */
function refuse(call: Call, spent: RateState, nowMs: number): never {
  call.tally.due = 0;
  throw rateLimitExceeded(spent, nowMs);
}

/**
 * If the window is exhausted, only an earlier request may be replayed, as a read; one with a new key is 429. The items of a
 * batch have keys of their own, which only the handler sees.
 */
async function admitReplay(
  deps: RateLimits,
  call: Call,
  principal: Principal,
  { spent, nowMs }: { spent: RateState; nowMs: number },
): Promise<void> {
  const key = findIdempotencyKey(call);
  const isBatch = call.rules.batchOf !== '';
  if (key === undefined && !isBatch) refuse(call, spent, nowMs);
  const { rateStates, tally } = call;
  tally.due = 0;
  await countReads(deps, call, principal, 1, nowMs);
  call.rateStates = [...rateStates, ...call.rateStates];
  if (key !== undefined && !(await deps.hasClaim(principal, key))) refuse(call, spent, nowMs);
  tally.due = undefined;
  tally.room = 'replays';
}

async function countReads(
  deps: RateLimits,
  call: Call,
  principal: Principal,
  count: number,
  nowMs: number,
): Promise<void> {
  call.tally.taken = count;
  try {
    call.rateStates = [await deps.takeReads(principal, count)];
  } catch (error) {
    if (isSpentWindow(error)) call.rateStates = [spentReadWindow(principal, resetOf(error, nowMs))];
    throw error;
  }
}

/**
 * Counts a request that has no route as a read. Returns the window after it; a spent one as well, because the request is
 * refused anyway.
 */
export async function countUnrouted(
  deps: RateLimits,
  principal: Principal,
  nowMs: number,
): Promise<RateState> {
  try {
    return await deps.takeReads(principal, 1);
  } catch (error) {
    if (isSpentWindow(error)) return spentReadWindow(principal, resetOf(error, nowMs));
    throw error;
  }
}

/** Whether a call was refused because a window is exhausted. */
export function isSpentWindow(error: unknown): error is ApiError {
  return error instanceof ApiError && error.code === ErrorCode.RATE_LIMIT_EXCEEDED;
}

/** The key's window for the rate-limit headers of a refusal, also of one by the window of its project. */
function spentReadWindow({ readWindow }: Principal, resetAtMs: number): RateState {
  return { bucket: Bucket.READS, ...readWindow, remaining: 0, resetAtMs };
}

function resetOf({ details }: ApiError, nowMs: number): number {
  return typeof details.reset === 'string' ? Date.parse(details.reset) : nowMs;
}

const BUCKET_NAMES: ReadonlyMap<Bucket, string> = new Map(
  [Bucket.READS, Bucket.SUBMISSIONS].map((bucket) => [bucket, enumName(BucketSchema, bucket)]),
);

/**
 * Rate-limit response headers as a flat [name, value, …] list: `x-ratelimit-*` of the tightest
 * window (reset in epoch seconds), and `ratelimit` and `ratelimit-policy` of every window as in
 * draft-ietf-httpapi-ratelimit-headers-10 (`t` is in seconds from now). Empty if the call was not counted.
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
