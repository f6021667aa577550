import { deadlineExceeded } from '../../core/errors.js';
import type { NodeRequest } from '../socket/requests.js';

const UNIT_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000 };
/** Maximum of a Node timer, 24 days; a longer one fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Removes a deadline that is longer than the maximum of a timer: such a call has none. */
export function dropEndlessDeadline({ headers }: NodeRequest): void {
  const [, digits, unit = ''] = /^(\d{1,8})([HMS])$/.exec(String(headers['grpc-timeout'])) ?? [];
  if (Number(digits) * (UNIT_MS[unit] ?? 0) > MAX_TIMER_MS) delete headers['grpc-timeout'];
  if (Number(headers['connect-timeout-ms']) > MAX_TIMER_MS) delete headers['connect-timeout-ms'];
}

/** Waits for the work; throws `service.deadline_exceeded` as soon as the signal aborts. */
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

/** Waits for the work; throws `service.deadline_exceeded` after `timeoutMs`. */
export async function within<T>(timeoutMs: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(deadlineExceeded()), timeoutMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
