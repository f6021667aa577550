import { type DescMessage, type Message, toBinary } from '@bufbuild/protobuf';
import type { ConnectRouter, Interceptor, StreamRequest } from '@connectrpc/connect';
import type { FastifyInstance } from 'fastify';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { ApiError, unavailable } from '../../core/errors.js';
import type { HoldResponse } from '../socket/bodies.js';
import type { Limits } from '../socket/limits.js';
import { type RequestRecord, whenClosed } from '../socket/requests.js';
import { asConnectError, type LibraryDeps, recordOf, registerLibrary } from './library.js';
import { protocolOf } from './messages.js';
import { createPublicOutput, type PublicOutput } from './public-output.js';
import { refuseEarly } from './refusal.js';

type PublicServicesDeps = LibraryDeps & {
  /** Adds the services that anyone may call: health, reflection. */
  publicServices: (router: ConnectRouter) => void;
  limits: Limits;
  /** Aborted when the server begins to close: ends streams that would not end by themselves. */
  closing: AbortSignal;
  /** Counts the bytes of responses until they are sent. */
  holdResponse: HoldResponse;
};

/** A stream whose client streams ends in order before the request's own time limit would reset it. */
const BEFORE_RESET = 0.9;
const RETRY_SECONDS = 1;
/** What a call or a message of a stream counts as at least: the library takes 0.2 to 0.5 ms of CPU for one. */
const MIN_BYTES = 16 * 1024;

/**
 * Serves the services that anyone may call by Connect's library, on Connect, gRPC and gRPC-Web. Bounds the size of a
 * message, how many streams are open at once, how long each is, how many messages a client sends on it, and the calls,
 * messages and bytes of its address. One that has to end, also because the server closes, ends with UNAVAILABLE, so that
 * clients come back, and one with too many messages with `request.too_large`.
 */
export function registerPublicServices(app: FastifyInstance, deps: PublicServicesDeps): void {
  const { getRecord, limits } = deps;
  const output = createPublicOutput(() => performance.now());
  app.register(async (scope) => {
    scope.addHook('onRequest', (request, reply, next) => {
      const record = getRecord(request);
      record.protocol = protocolOf(request.headers['content-type']);
      if (!output.isSpent(record.peer)) {
        output.spend(record.peer, MIN_BYTES);
        next();
        return;
      }
      reply.hijack();
      refuseEarly(record, sentTooMuch());
    });
    await registerLibrary(scope, deps, deps.publicServices, {
      readMaxBytes: limits.maxPublicBytes,
      shutdownSignal: deps.closing,
      // Decompressing costs more than a stranger's message.
      acceptCompression: [],
      interceptors: [boundStreams(deps, output)],
    });
  });
}

type Open = PublicServicesDeps & { output: PublicOutput; record: RequestRecord };

function boundStreams(deps: PublicServicesDeps, output: PublicOutput): Interceptor {
  let streams = 0;
  return (next) => async (request) => {
    if (!request.stream) return next(request);
    const record = recordOf(request);
    const open = { ...deps, output, record };
    try {
      if (streams >= deps.limits.maxOpenStreams) {
        throw unavailable('too many streams are open', RETRY_SECONDS);
      }
      streams++;
      whenClosed(record.res, () => streams--);
      const response = await next({ ...request, message: boundRequests(open, request.message) });
      if (!response.stream) throw new Error('a stream has one response');
      return { ...response, message: boundResponses(open, request, response.message) };
    } catch (error) {
      throw asConnectError(deps.log, record, error);
    }
  };
}

async function* boundRequests(
  { limits, output, record }: Open,
  messages: AsyncIterable<Message>,
): AsyncIterable<Message> {
  let count = 0;
  for await (const message of messages) {
    if (++count > limits.maxStreamMessages) throw tooManyMessages(limits.maxStreamMessages);
    if (output.isSpent(record.peer)) throw sentTooMuch();
    yield message;
  }
}

async function* boundResponses(
  open: Open,
  request: StreamRequest,
  messages: AsyncIterable<Message>,
): AsyncIterable<Message> {
  const { holdResponse, output, record, closing } = open;
  const iterator = messages[Symbol.asyncIterator]();
  const over = whenOver(open, request);
  try {
    for (;;) {
      const next = await Promise.race([iterator.next(), over]);
      if (next.done) break;
      const bytes = sizeOf(request.method.output, next.value);
      holdResponse(record, bytes);
      output.spend(record.peer, Math.max(bytes, MIN_BYTES));
      yield next.value;
    }
    if (closing.aborted) throw serverIsClosing();
  } catch (error) {
    throw asConnectError(open.log, record, error);
  } finally {
    iterator.return?.().catch(() => {});
  }
}

/** Rejects when a stream has to end: by its caller's deadline, its duration, or because the server closes. */
function whenOver({ limits, closing, record }: Open, { method, signal }: StreamRequest): Promise<never> {
  const isServerStream = method.methodKind === 'server_streaming';
  const limitMs = isServerStream ? limits.maxStreamMs : limits.requestTimeoutMs * BEFORE_RESET;
  const over = new Promise<never>((_resolve, reject) => {
    const ageMs = performance.now() - record.startedMs;
    const timer = setTimeout(() => reject(openTooLong()), limitMs - ageMs);
    whenClosed(record.res, () => clearTimeout(timer));
    const onAbort = () => {
      // A server's stream still sends its last message.
      if (!closing.aborted) reject(signal.reason);
      else if (!isServerStream) reject(serverIsClosing());
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
  over.catch(() => {});
  return over;
}

/** Of messages that are sent again and again, as the answers of reflection are. */
const sizes = new WeakMap<Message, number>();

function sizeOf(desc: DescMessage, message: Message): number {
  const known = sizes.get(message) ?? toBinary(desc, message).length;
  sizes.set(message, known);
  return known;
}

function tooManyMessages(max: number): ApiError {
  return new ApiError(ErrorCode.REQUEST_TOO_LARGE, `a stream takes ${max} messages; begin another one`);
}

function sentTooMuch(): ApiError {
  return unavailable('too much was sent to this address without credentials', RETRY_SECONDS);
}

function openTooLong(): ApiError {
  return unavailable('the stream reached its maximum duration; reconnect', RETRY_SECONDS);
}

function serverIsClosing(): ApiError {
  return unavailable('the server is closing', RETRY_SECONDS);
}
