import { type DescMessage, type Message, toBinary } from '@bufbuild/protobuf';
import {
  ConnectError,
  type ConnectRouter,
  createContextKey,
  createContextValues,
  type Interceptor,
  type StreamRequest,
} from '@connectrpc/connect';
import { fastifyConnectPlugin } from '@connectrpc/connect-fastify';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { ApiError, internalError, unavailable } from '../../core/errors.js';
import type { Logger } from '../../core/logger.js';
import type { HoldResponse } from '../socket/bodies.js';
import type { Limits } from '../socket/limits.js';
import { type RequestRecord, whenClosed } from '../socket/requests.js';
import { ErrorStatus } from './connect-error.js';
import { protocolOf } from './messages.js';
import { createPublicOutput, type PublicOutput } from './public-output.js';

type PublicServicesDeps = {
  /** Adds the services that anyone may call: health, reflection. */
  routes: (router: ConnectRouter) => void;
  getRecord: (request: FastifyRequest) => RequestRecord;
  limits: Limits;
  log: Logger;
  /** Counts the bytes of responses until they are sent. */
  holdResponse: HoldResponse;
  /** Aborted when the server begins to close: ends streams that would not end by themselves. */
  closing: AbortSignal;
};

const RECORD = createContextKey<RequestRecord | undefined>(undefined);
/** A stream whose client streams ends in order before the request's own time limit would reset it. */
const BEFORE_RESET = 0.9;
const RETRY_SECONDS = 1;

/**
 * Serves the services that anyone may call by Connect's library, on Connect, gRPC and gRPC-Web. Bounds the size of a
 * message, how many streams are open at once, how long each is, how many messages a client sends on it, and the bytes
 * that its address is sent. One that has to end, also because the server closes, ends with UNAVAILABLE, so that clients
 * come back, and one with too many messages with `request.too_large`.
 */
export function registerPublicServices(app: FastifyInstance, deps: PublicServicesDeps): void {
  app.register(fastifyConnectPlugin, {
    routes: deps.routes,
    readMaxBytes: deps.limits.maxPublicBytes,
    // Decompressing costs more than a stranger's message.
    acceptCompression: [],
    interceptors: [boundCalls(deps)],
    shutdownSignal: deps.closing,
    contextValues: (request) => {
      const record = deps.getRecord(request);
      record.protocol = protocolOf(request.headers['content-type']);
      return createContextValues().set(RECORD, record);
    },
  });
}

type Open = PublicServicesDeps & { output: PublicOutput; record: RequestRecord };

function boundCalls(deps: PublicServicesDeps): Interceptor {
  const output = createPublicOutput(() => performance.now());
  let streams = 0;
  return (next) => async (request) => {
    const record = request.contextValues.get(RECORD) as RequestRecord;
    const open = { ...deps, output, record };
    try {
      if (!request.stream) return await next(request);
      if (streams >= deps.limits.maxOpenStreams) {
        throw unavailable('too many streams are open', RETRY_SECONDS);
      }
      streams++;
      whenClosed(record.res, () => streams--);
      const response = await next({ ...request, message: boundRequests(open, request.message) });
      if (!response.stream) throw new Error('a stream has one response');
      return { ...response, message: boundResponses(open, request, response.message) };
    } catch (error) {
      throw asConnectError(open, error);
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
      output.spend(record.peer, bytes);
      yield next.value;
    }
    if (closing.aborted) throw serverIsClosing();
  } catch (error) {
    throw asConnectError(open, error);
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

/** The error for the caller, recorded. The request id is in the headers already. */
function asConnectError({ record, log }: Open, thrown: unknown): unknown {
  if (thrown instanceof ConnectError || record.res.destroyed) return thrown;
  if (!(thrown instanceof ApiError)) {
    log.error({ err: thrown, request_id: record.requestId }, 'a call failed');
  }
  const error = thrown instanceof ApiError ? thrown : internalError(record.requestId, thrown);
  record.error = error.code;
  const { message, code, metadata, details } = new ErrorStatus(error, record.requestId, undefined, true);
  return new ConnectError(
    message,
    code,
    metadata,
    details.map(({ desc, message: value }) => ({ desc, value })),
  );
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
