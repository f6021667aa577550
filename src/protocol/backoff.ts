/** Exponential backoff: from `firstMs`, doubled with each of `failures` up to `maxMs`, without jitter. */
export function exponentialMs(
  failures: number,
  { firstMs, maxMs }: { firstMs: number; maxMs: number },
): number {
  return Math.min(maxMs, firstMs * 2 ** failures);
}

/** Adds a jitter of a fifth either way to a delay; `random` is in [0, 1). */
export function withJitter(ms: number, random: number): number {
  return ms * (0.8 + 0.4 * random);
}
