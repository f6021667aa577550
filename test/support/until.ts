import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 25;
/** A slow machine under load is waited for; what never comes is known after it. */
const DEADLINE_MS = 120_000;

/**
 * Waits for a condition of another process: looks again until `find` gives something, and throws once `deadlineMs` has
 * passed, with what `find` last failed with. Nothing is measured by it.
 */
export async function until<T>(
  what: string,
  find: () => Promise<T | undefined | false> | T | undefined | false,
  deadlineMs = DEADLINE_MS,
): Promise<T> {
  const end = Date.now() + deadlineMs;
  let cause: unknown;
  for (;;) {
    try {
      const found = await find();
      if (found !== undefined && found !== false) return found;
      cause = undefined;
    } catch (error) {
      cause = error;
    }
    if (Date.now() > end) throw new Error(`it never came to this: ${what}`, { cause });
    await delay(POLL_MS);
  }
}
