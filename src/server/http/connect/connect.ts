import type { Message } from '@bufbuild/protobuf';
import {
  type ConnectRouter,
  type ContextValues,
  createContextKey,
  createContextValues,
  type HandlerContext,
} from '@connectrpc/connect';
import { createAsyncIterable, type UniversalServerResponse } from '@connectrpc/connect/protocol';
import { type Call, messageOf } from '../../core/call.js';
import { ApiError } from '../../core/errors.js';
import type { Logger } from '../../core/logger.js';
import { compileMessageCheck } from '../../json/check-message.js';
import type { Interceptors } from '../call/interceptors.js';
import { inChunks } from '../rest/write-response.js';
import { type ServiceEntry, unaryMethods } from '../services.js';
import type { HoldResponse } from '../socket/memory.js';
import type { RequestRecord } from '../socket/requests.js';
import { asApiError, connectError } from './connect-error.js';
import { completeError, noSuchRpc } from './protocol-error.js';
import { protocolOf } from './read-message.js';
import { addRateHeaders, type RpcResponse, refusalResponse } from './refusal.js';
import { beforeDeadline, within } from './rpc-deadline.js';

type ConnectDeps = {
  services: readonly ServiceEntry[];
  interceptors: Interceptors;
  log: Logger;
  /** Counts the bytes of responses until they are sent. */
  holdResponse: HoldResponse;
  /** Timeout of calls without a deadline of their own. */
  responseTimeoutMs: number;
};

/** Headers of the body as sent, which do not hold for the message that was read from it. */
const OF_THE_BODY_AS_SENT = ['content-length', 'content-encoding', 'grpc-encoding'];

const recordKey = createContextKey<RequestRecord | undefined>(undefined);

/** Passes a request's record to Connect's handlers. */
export function connectContext(record: RequestRecord): ContextValues {
  return createContextValues().set(recordKey, record);
}

/**
 * Serves the services on Connect, gRPC and gRPC-Web. Connect parses the messages of admitted calls, which are then
 * invoked as on every protocol. A request that was not admitted gets `route.not_found`.
 */
export function connectRoutes(deps: ConnectDeps): (router: ConnectRouter) => void {
  return (router) => {
    for (const method of unaryMethods(deps.services)) {
      const check = compileMessageCheck(method.input);
      router.rpc(method, (message, context) => respond(deps, check, message, context));
    }
    const handlers = router.handlers;
    handlers.forEach((handler, index) => {
      handlers[index] = Object.assign(
        async (request: Parameters<typeof handler>[0]) => {
          const record = getRecord(request.contextValues);
          record.protocol = protocolOf(request.header.get('content-type'));
          const { message } = record;
          const isAdmitted = record.call !== undefined || !handler.allowedMethods.includes(request.method);
          if (!isAdmitted) return noSuchRpc(record);
          const read = message === undefined ? request : { ...request, body: createAsyncIterable([message]) };
          if (message !== undefined) for (const name of OF_THE_BODY_AS_SENT) request.header.delete(name);
          // From here on the id is among the call's metadata; it would be sent twice.
          record.res.removeHeader('x-request-id');
          const response = await completeError(await handler(read), record, handler.allowedMethods);
          return holdBody(deps.holdResponse, record, response);
        },
        {
          service: handler.service,
          method: handler.method,
          requestPath: handler.requestPath,
          supportedContentType: handler.supportedContentType,
          protocolNames: handler.protocolNames,
          allowedMethods: handler.allowedMethods,
        },
      );
    });
  };
}

/** The response in chunks, its bytes counted; the refusal if no more can be held. Connect gives a message as one chunk. */
async function holdBody(
  holdResponse: HoldResponse,
  record: RequestRecord,
  response: UniversalServerResponse,
): Promise<UniversalServerResponse> {
  if (response.body === undefined) return response;
  const chunks = response.body[Symbol.asyncIterator]();
  const first = await chunks.next();
  try {
    if (!first.done) holdResponse(record, first.value.length);
    return { ...response, body: inChunks(resumed(first, chunks)) };
  } catch (error) {
    if (!(error instanceof ApiError) || record.call === undefined) throw error;
    void chunks.return?.();
    return universal(refusalResponse(record, record.call, error));
  }
}

/** The first result and the rest of an iterator. */
async function* resumed<T>(first: IteratorResult<T>, iterator: AsyncIterator<T>): AsyncIterable<T> {
  try {
    for (let result = first; !result.done; result = await iterator.next()) yield result.value;
  } finally {
    await iterator.return?.();
  }
}

function universal({ status, headers, body, trailer }: RpcResponse): UniversalServerResponse {
  const header = new Headers();
  for (let i = 0; i < headers.length; i += 2) header.append(headers[i] as string, headers[i + 1] as string);
  if (body !== undefined) header.set('content-length', String(body.byteLength));
  return {
    status,
    header,
    ...(body !== undefined && { body: createAsyncIterable([body]) }),
    ...(trailer !== undefined && { trailer }),
  };
}

type Check = (message: Message) => void;

async function respond(
  { interceptors, log, responseTimeoutMs }: ConnectDeps,
  check: Check,
  message: Message,
  context: HandlerContext,
): Promise<Message> {
  const record = getRecord(context.values);
  if (record.call === undefined) throw new Error('a call reached its handler without being admitted');
  const call: Call = { ...record.call, signal: () => context.signal };
  record.call = call;
  record.isInvoked = true;
  try {
    const work = run(interceptors, call, message, check);
    const response = await (context.timeoutMs() === undefined
      ? within(responseTimeoutMs, work)
      : beforeDeadline(context.signal, work));
    context.responseHeader.set('x-request-id', call.requestId);
    addRateHeaders(interceptors, call);
    for (const [name, value] of call.responseHeaders) context.responseHeader.set(name, value);
    if (context.requestMethod === 'GET') allowNoReuse(record, context.responseHeader);
    return response;
  } catch (thrown) {
    const error = asApiError(log, thrown, call);
    record.error = error.code;
    addRateHeaders(interceptors, call);
    throw connectError(error, call);
  }
}

async function run({ invoke }: Interceptors, call: Call, message: Message, check: Check): Promise<Message> {
  // The caller has disconnected or the deadline has passed.
  call.signal().throwIfAborted();
  check(message);
  return messageOf(await invoke(call, message));
}

/** Lets a private cache keep the response to a Connect GET and revalidate it before each use. */
function allowNoReuse({ res }: RequestRecord, headers: Headers): void {
  const vary = res.getHeader('vary');
  headers.set('vary', vary === undefined ? 'accept-encoding' : `${vary}, accept-encoding`);
  headers.set('cache-control', 'private, no-cache');
}

/** The record of an RPC's request. Throws if `connectContext` did not pass it. */
export function getRecord(values: ContextValues | undefined): RequestRecord {
  const record = values?.get(recordKey);
  if (record === undefined) throw new Error('a request reached Connect without its record');
  return record;
}
