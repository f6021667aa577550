import { Code, ConnectError, type Interceptor, type StreamResponse } from '@connectrpc/connect';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { ApiError, deadlineExceeded, unavailable } from '../../core/errors.js';
import { connectError } from '../connect/connect-error.js';
import { getRecord } from '../connect/context.js';
import { protocolOf } from '../connect/message-format.js';
import type { Limits } from './limits.js';
import type { HoldResponse } from './memory.js';
import type { RequestRecord } from './requests.js';

type Messages = StreamResponse['message'];

/** A stream whose client streams ends in order before the request's own time limit would reset it. */
const BEFORE_RESET = 0.9;
const RETRY_SECONDS = 1;

/**
 * Bounds the RPCs that anyone may call: how many of their streams are open at once, how long each is, and how many
 * messages a client sends on it. One that has to end, also because the server closes, ends with UNAVAILABLE, so that
 * clients come back, and one with too many messages with `request.too_large`.
 */
export function boundStreams(
  { maxOpenStreams, maxStreamMessages, maxStreamMs, requestTimeoutMs }: Limits,
  holdResponse: HoldResponse,
  closing: AbortSignal,
): Interceptor {
  let open = 0;
  return (next) => async (request) => {
    const record = getRecord(request.contextValues);
    record.protocol = protocolOf(request.header.get('content-type'));
    if (!request.stream) return next(request);
    if (open >= maxOpenStreams)
      throw refusal(record, unavailable('too many streams are open', RETRY_SECONDS));
    const isServerOnly = request.method.methodKind === 'server_streaming';
    const time = startTimer(record, isServerOnly ? maxStreamMs : requestTimeoutMs * BEFORE_RESET);
    open++;
    let isOpen = true;
    const end = () => {
      time.stop();
      if (isOpen) open--;
      isOpen = false;
    };
    // If the client cancels the stream before it has read a message, the next message is never asked for.
    record.res.once('close', end);
    const signal = AbortSignal.any([request.signal, time.signal]);
    const sent = sentMessages(request.message, { record, signal, max: maxStreamMessages });
    try {
      const response = await next({ ...request, signal, message: sent });
      const message = untilEnd(response.message as Messages, { record, signal, closing, holdResponse, end });
      return { ...response, message } as StreamResponse;
    } catch (error) {
      end();
      throw error;
    }
  };
}

function startTimer(record: RequestRecord, afterMs: number): { signal: AbortSignal; stop: () => void } {
  const controller = new AbortController();
  const timer = setTimeout(() => {
    const error = unavailable('the stream has been open as long as it may', RETRY_SECONDS);
    controller.abort(refusal(record, error));
  }, afterMs);
  return { signal: controller.signal, stop: () => clearTimeout(timer) };
}

type Sending = { record: RequestRecord; signal: AbortSignal; max: number };

/** The messages of a client, which end when the signal aborts; throws when there are more than `max`. */
async function* sentMessages<T>(
  messages: AsyncIterable<T>,
  { record, signal, max }: Sending,
): AsyncIterable<T> {
  const iterator = messages[Symbol.asyncIterator]();
  const over = aborted(signal).then(() => ({ done: true, value: undefined }) as const);
  for (let count = 1; ; count++) {
    const next = await Promise.race([iterator.next(), over]);
    if (next.done) return;
    if (count > max) throw refusal(record, tooManyMessages(max));
    yield next.value;
  }
}

function tooManyMessages(max: number): ApiError {
  return new ApiError(ErrorCode.REQUEST_TOO_LARGE, `a stream takes ${max} messages; begin another one`);
}

type Ending = {
  record: RequestRecord;
  signal: AbortSignal;
  closing: AbortSignal;
  holdResponse: HoldResponse;
  end: () => void;
};

/** The server's messages, which end if the signal aborts; when the server closes, its last message is still sent. */
async function* untilEnd(
  messages: Messages,
  { record, signal, closing, holdResponse, end }: Ending,
): Messages {
  const iterator = messages[Symbol.asyncIterator]();
  const cut = aborted(signal).then(() => (closing.aborted ? never() : reasonOf(record, signal)));
  try {
    for (;;) {
      const next = await Promise.race([iterator.next(), cut]);
      if (next instanceof ConnectError) throw next;
      if (next.done) break;
      assertHeld(holdResponse, record, next.value);
      yield next.value;
    }
    if (closing.aborted) throw refusal(record, unavailable('the server is closing', RETRY_SECONDS));
  } finally {
    end();
    void iterator.return?.().catch(() => {});
  }
}

/** Counts a message of the server. Throws `service.unavailable` if no more can be held. */
function assertHeld(holdResponse: HoldResponse, record: RequestRecord, message: unknown): void {
  try {
    holdResponse(record, sizeOf(message));
  } catch (error) {
    throw error instanceof ApiError ? refusal(record, error) : error;
  }
}

/** The approximate size of a message in bytes: that of its strings and byte arrays. */
function sizeOf(value: unknown): number {
  if (typeof value === 'string' || value instanceof Uint8Array) return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  return Object.values(value).reduce((sum, member) => sum + sizeOf(member), 0);
}

/** The reason of an aborted signal; Connect's error of a deadline becomes ours. */
function reasonOf(record: RequestRecord, { reason }: AbortSignal): ConnectError {
  const error = ConnectError.from(reason);
  return error.code === Code.DeadlineExceeded ? refusal(record, deadlineExceeded(error)) : error;
}

/** Without the request id, which is in the response's headers already. */
function refusal(record: RequestRecord, error: ApiError): ConnectError {
  record.error = error.code;
  const failure = connectError(error, { requestId: record.requestId, responseHeaders: new Map() });
  failure.metadata.delete('x-request-id');
  return failure;
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

function never(): Promise<never> {
  return new Promise(() => {});
}
