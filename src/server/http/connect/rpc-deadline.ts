import type { IncomingHttpHeaders } from 'node:http';
import { ApiError, deadlineExceeded } from '../../core/errors.js';
import { invalidRequest } from '../../json/problems.js';
import { closeSignal } from '../call/new-call.js';
import type { RequestRecord } from '../socket/requests.js';

const UNIT_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 0.001,
  n: 0.000_001,
};
/** Maximum of a Node timer, 24 days; a longer one fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * The milliseconds that the caller gives a call, from its start. Undefined if the headers set no deadline, or one that is
 * longer than the maximum of a timer; `request.invalid`, not thrown, for a header that cannot be read.
 */
export function readTimeout(headers: IncomingHttpHeaders, isConnect: boolean): number | ApiError | undefined {
  const name = isConnect ? 'connect-timeout-ms' : 'grpc-timeout';
  const value = headers[name];
  if (value === undefined) return undefined;
  const timeoutMs = isConnect ? readMilliseconds(String(value)) : readGrpcTimeout(String(value));
  if (timeoutMs === undefined) {
    return invalidRequest([{ path: '', message: `cannot be read: the header ${name} is no timeout` }]);
  }
  return timeoutMs > MAX_TIMER_MS ? undefined : timeoutMs;
}

function readMilliseconds(value: string): number | undefined {
  return /^\d{1,10}$/.test(value) ? Number(value) : undefined;
}

function readGrpcTimeout(value: string): number | undefined {
  const [, digits, unit = ''] = /^(\d{1,8})([HMSmun])$/.exec(value) ?? [];
  return digits === undefined ? undefined : Number(digits) * (UNIT_MS[unit] ?? 0);
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
  const timeout = readTimeout(record.req.headers, record.protocol === 'connect');
  const ofClient = closeSignal(record.res);
  if (timeout === undefined) {
    record.timesOut = true;
    return { signal: ofClient, assertOpen: () => {}, stop: () => {} };
  }
  if (timeout instanceof ApiError) {
    const assertOpen = () => {
      throw timeout;
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
