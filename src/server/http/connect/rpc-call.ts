import type { DescMethodUnary } from '@bufbuild/protobuf';
import type { Call } from '../../core/call.js';
import { ApiError, deadlineExceeded } from '../../core/errors.js';
import { closeSignal, newCall } from '../call/new-call.js';
import type { RequestRecord } from '../socket/requests.js';
import { readTimeout } from './rpc-deadline.js';

/** The deadline that a caller sets for a call. */
type Deadline = {
  /** Throws `service.deadline_exceeded` once it has passed, and `request.invalid` if it cannot be read. */
  assertOpen: () => void;
  stop: () => void;
};

const NO_DEADLINE: Deadline = { assertOpen: () => {}, stop: () => {} };

/**
 * Begins the call of a request. Without a deadline of its own it is bound by the check of all requests, which costs no
 * timer; with one, `onLate` is called when it has passed, and the call's signal aborts.
 */
export function startRpcCall(
  method: DescMethodUnary,
  record: RequestRecord,
  onLate: () => void,
): { call: Call; deadline: Deadline } {
  const { req, res } = record;
  const timeout = readTimeout(req.headers, record.protocol === 'connect');
  const ofClient = closeSignal(res);
  if (timeout === undefined) {
    record.timesOut = true;
    const call = newCall(method, record, ofClient);
    record.call = call;
    return { call, deadline: NO_DEADLINE };
  }
  const passed = new AbortController();
  const call = newCall(method, record, () => AbortSignal.any([ofClient(), passed.signal]));
  record.call = call;
  if (timeout instanceof ApiError) return { call, deadline: unreadable(timeout) };
  const timer = setTimeout(() => {
    passed.abort(deadlineExceeded());
    onLate();
  }, timeout);
  return {
    call,
    deadline: {
      assertOpen: () => {
        if (passed.signal.aborted || performance.now() - record.startedMs >= timeout)
          throw deadlineExceeded();
      },
      stop: () => clearTimeout(timer),
    },
  };
}

function unreadable(error: ApiError): Deadline {
  return {
    assertOpen: () => {
      throw error;
    },
    stop: () => {},
  };
}
