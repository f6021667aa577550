/** Lifetime of a lease that is not renewed, and so the longest that the work of a dead worker waits. */
export const LEASE_MS = 5_000;
const RENEW_MS = 1_500;

/**
 * Calls `renew` every 1.5 s, one call at a time, and ignores failures: the next call retries.
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
