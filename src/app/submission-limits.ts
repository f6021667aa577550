import type { Principal } from '../principal.js';
import type { RateState } from '../rate.js';

/** What this process last saw of its keys' submission windows, so that a refusal need not read the body. */
export type SubmissionLimits = {
  /** Told what a write has counted. */
  note(principal: Principal, states: readonly RateState[]): void;
  /** The windows of a key as last seen; none when the key has not written here. A window that has ended is full again. */
  peek(principal: Principal, nowMs: number): readonly RateState[];
};

const KEYS_REMEMBERED = 10_000;

/** The exact count is made inside the write; another process's writes show here only with this one's next. */
export function createSubmissionLimits(): SubmissionLimits {
  const seen = new Map<string, readonly RateState[]>();
  return {
    note({ apiKeyId }, states) {
      if (seen.size >= KEYS_REMEMBERED && !seen.has(apiKeyId)) seen.clear();
      seen.set(apiKeyId, states);
    },
    peek: ({ apiKeyId }, nowMs) => (seen.get(apiKeyId) ?? []).map((state) => asOf(state, nowMs)),
  };
}

function asOf(state: RateState, nowMs: number): RateState {
  if (nowMs < state.resetAtMs) return state;
  const windowMs = state.windowSeconds * 1000;
  return { ...state, remaining: state.limit, resetAtMs: (Math.floor(nowMs / windowMs) + 1) * windowMs };
}
