import type { IncomingHttpHeaders } from 'node:http';
import type { ApiError } from '../../core/errors.js';
import { invalidRequest } from '../../json/problems.js';
import type { NodeRequest } from '../socket/requests.js';

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

/** Removes a deadline that is longer than the maximum of a timer: such a call has none. */
export function dropEndlessDeadline({ headers }: NodeRequest): void {
  for (const name of ['grpc-timeout', 'connect-timeout-ms'] as const) {
    const isSet = headers[name] !== undefined;
    if (isSet && readTimeout(headers, name === 'connect-timeout-ms') === undefined) delete headers[name];
  }
}
