import { parseTimeout as parseConnectTimeout } from '@connectrpc/connect/protocol-connect';
import { parseTimeout as parseGrpcTimeout } from '@connectrpc/connect/protocol-grpc';
import { deadlineExceeded } from '../../core/errors.js';
import { closeSignal } from '../call/new-call.js';
import type { RequestRecord } from '../socket/requests.js';
import { unreadable } from './errors.js';

/** Maximum of a Node timer, 24 days; a longer one fires at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * The milliseconds that the caller gives a call, from its start. Undefined if the headers set no deadline, or one that is
 * longer than the maximum of a timer. Throws `request.invalid` for a header that cannot be read.
 */
function readTimeout({ req: { headers }, protocol }: RequestRecord): number | undefined {
  const [name, parse] =
    protocol === 'connect'
      ? (['connect-timeout-ms', parseConnectTimeout] as const)
      : (['grpc-timeout', parseGrpcTimeout] as const);
  const value = headers[name];
  if (value === undefined) return undefined;
  const { timeoutMs = Number.POSITIVE_INFINITY, error } = parse(String(value), Number.POSITIVE_INFINITY);
  if (error !== undefined) throw unreadable(`the header ${name} is no timeout`);
  return timeoutMs > MAX_TIMER_MS ? undefined : timeoutMs;
}

/** The deadline that a caller sets for a call. */
type Deadline = {
  /** Aborts when it has passed, or the client disconnects. Created on first use. */
  signal: () => AbortSignal;
  /** Throws `service.deadline_exceeded` once it has passed, and `request.invalid` if it cannot be read. */
  assertOpen: () => void;
  stop: () => void;
};

/**
 * Starts the deadline of a call. One without a deadline of its own is bound by the check of all requests, which costs no
 * timer; of another one `onLate` is called when it has passed.
 */
export function startDeadline(record: RequestRecord, onLate: () => void): Deadline {
  const ofClient = closeSignal(record.res);
  let timeout: number | undefined;
  let problem: unknown;
  try {
    timeout = readTimeout(record);
  } catch (error) {
    problem = error;
  }
  if (timeout === undefined) {
    record.timesOut = true;
    const assertOpen = () => {
      if (problem !== undefined) throw problem;
    };
    return { signal: ofClient, assertOpen, stop: () => {} };
  }
  const passed = new AbortController();
  const timer = setTimeout(() => {
    passed.abort(deadlineExceeded());
    onLate();
  }, timeout);
  return {
    signal: () => AbortSignal.any([ofClient(), passed.signal]),
    assertOpen: () => {
      const ageMs = performance.now() - record.startedMs;
      if (passed.signal.aborted || ageMs >= timeout) throw deadlineExceeded();
    },
    stop: () => clearTimeout(timer),
  };
}
