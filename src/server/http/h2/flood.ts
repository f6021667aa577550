/** How much a client may ask for that brings nothing forward: so much at once, and more as time passes. */
export type Allowance = {
  /** Returns false once it is used up. */
  spend: () => boolean;
  /** Gives back for work that justifies more, up to what there was at first. */
  earn: (count: number) => void;
};

/** @param monotonicMs read only when nothing is left of what was earned */
export function createAllowance(burst: number, perSecond: number, monotonicMs: () => number): Allowance {
  let left = burst;
  let filledMs = monotonicMs();
  return {
    spend() {
      if (--left >= 0) return true;
      const nowMs = monotonicMs();
      left = Math.min(burst, left + ((nowMs - filledMs) / 1_000) * perSecond);
      filledMs = nowMs;
      return left >= 0;
    },
    earn(count) {
      left = Math.min(burst, left + count);
    },
  };
}
