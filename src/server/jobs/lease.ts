/**
 * Lifetime of a lease that is not renewed. The reconciler of another worker takes over within a second of its end, so that
 * no work waits for a dead worker longer than five.
 */
export const LEASE_MS = 3_000;
const RENEW_MS = 1_000;

/**
 * Calls `renew` every second, one call at a time, and ignores failures: the next call retries.
 *
 * @returns a function that stops renewing and resolves once no call is in flight
 */
export function keepRenewing(renew: () => Promise<unknown>): () => Promise<void> {
  let underWay: Promise<void> | undefined;
  const timer = setInterval(() => {
    underWay ??= renew()
      .then(
        () => {},
        () => {},
      )
      .finally(() => {
        underWay = undefined;
      });
  }, RENEW_MS);
  return async () => {
    clearInterval(timer);
    await underWay;
  };
}
