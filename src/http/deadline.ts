import { deadlineExceeded } from './failure.js';

/** The work's outcome, or `service.deadline_exceeded` as soon as the signal aborts: a late answer helps nobody. */
export async function beforeDeadline<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  let onAbort: (() => void) | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(deadlineExceeded(signal.reason));
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    if (onAbort !== undefined) signal.removeEventListener('abort', onAbort);
  }
}
