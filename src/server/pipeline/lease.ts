/** How long a lease lasts that is not renewed: what a worker that died had in hand waits no longer. */
export const LEASE_MS = 5_000;
const RENEW_MS = 1_500;

/**
 * Calls `renew` every 1.5 s, never twice at a time; one that fails is left to the next.
 *
 * @returns what ends it; resolves when no renewal is under way any more
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
