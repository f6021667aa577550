/** Calls under way when a command is interrupted. */

/** A command ends within a second of the signal: what a call has by then is kept. */
const GRACE_MS = 500;

/**
 * Makes a call whose signal aborts half a second after `stop`. Returns undefined if it was aborted; throws what the call
 * throws.
 */
export async function callUntil<T>(
  stop: AbortSignal,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  const grace = startGrace(stop);
  try {
    return await call(grace.signal);
  } catch (error) {
    if (grace.signal.aborted) return undefined;
    throw error;
  } finally {
    grace.end();
  }
}

/** A signal that aborts half a second after `stop`, until `end`. */
export function startGrace(stop: AbortSignal): { readonly signal: AbortSignal; end(): void } {
  const ending = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const begin = () => {
    timer = setTimeout(() => ending.abort(), GRACE_MS);
  };
  if (stop.aborted) begin();
  else stop.addEventListener('abort', begin, { once: true });
  return {
    signal: ending.signal,
    end: () => {
      stop.removeEventListener('abort', begin);
      clearTimeout(timer);
    },
  };
}
