import { Bucket } from '../../../gen/attestation/options/v1/options_pb.js';
import type { Principal } from '../core/principal.js';
import type { RateState } from '../core/rate-window.js';
import type { WindowUse } from '../store/submissions/sequence-submissions.js';

const HOUR = 3_600;
const DAY = 86_400;

/**
 * The state of each window of the submissions bucket: what remains and when it resets. Windows are aligned to the
 * database's second, hour and UTC day. A window that ended before `nowSecond` counts as unused.
 */
export function submissionWindowStates(
  principal: Principal,
  use: WindowUse | undefined,
  nowSecond: number,
): RateState[] {
  return principal.submissionWindows.map(({ windowSeconds, limit }) => {
    const used = countIn(use, windowSeconds, nowSecond);
    return stateOf(Bucket.SUBMISSIONS, windowSeconds, limit, used, nowSecond);
  });
}

/** The state of the window of the reads bucket. */
export function readWindowState(
  principal: Principal,
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
