import type { DescMethodUnary, Message } from '@bufbuild/protobuf';
import {
  type ConnectRouter,
  type ContextValues,
  createContextKey,
  createContextValues,
  type HandlerContext,
} from '@connectrpc/connect';
import type { Call } from '../call.js';
import { compileMessageCheck } from '../json/check-message.js';
import type { Logger } from '../logger.js';
import { connectError } from './connect-error.js';
import { beforeDeadline, within } from './deadline.js';
import { asApiError } from './failure.js';
import type { Interceptors } from './interceptors.js';
import { newCall } from './new-call.js';
import { completeError } from './protocol-error.js';
import type { RequestRecord, Surface } from './requests.js';
import { type ServiceEntry, unaryMethods } from './services.js';

export type ConnectDeps = {
  services: readonly ServiceEntry[];
  interceptors: Interceptors;
  log: Logger;
  /** For calls that come without a deadline of their own. */
  answerTimeoutMs: number;
};

const recordKey = createContextKey<RequestRecord | undefined>(undefined);

/** Hands a request's record to the RPC that Connect makes of it. */
export function connectContext(record: RequestRecord): ContextValues {
  return createContextValues().set(recordKey, record);
}

/**
 * The services on Connect, gRPC and gRPC-Web. Connect reads and parses the body first; then a call goes the way of
 * every surface: admitted, then invoked.
 */
export function connectRoutes(deps: ConnectDeps): (router: ConnectRouter) => void {
  return (router) => {
    for (const method of unaryMethods(deps.services)) {
      const check = compileMessageCheck(method.input);
      router.rpc(method, (message, context) => answer(deps, { method, check }, message, context));
    }
    const handlers = router.handlers;
    handlers.forEach((handler, index) => {
      handlers[index] = Object.assign(
        async (request: Parameters<typeof handler>[0]) => {
          const record = getRecord(request.contextValues);
          record.surface = surfaceOf(request.header.get('content-type'));
          // From here on the id goes the way of the call's other metadata, lest it arrives twice.
          record.res.removeHeader('x-request-id');
          return completeError(await handler(request), record, handler.allowedMethods);
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

/** A method, and the check of its messages. */
type Checked = { method: DescMethodUnary; check: (message: Message) => void };

async function answer(
  { interceptors, log, answerTimeoutMs }: ConnectDeps,
  { method, check }: Checked,
  message: Message,
  context: HandlerContext,
): Promise<Message> {
  const record = getRecord(context.values);
  const call = newCall(method, record, () => context.signal);
  record.call = call;
  try {
    const work = run(interceptors, call, message, check);
    const response = await (context.timeoutMs() === undefined
      ? within(answerTimeoutMs, work)
      : beforeDeadline(context.signal, work));
    context.responseHeader.set('x-request-id', call.requestId);
    addConclusion(interceptors, call);
    for (const [name, value] of call.responseHeaders) context.responseHeader.set(name, value);
    if (context.requestMethod === 'GET') allowNoReuse(record, context.responseHeader);
    return response;
  } catch (thrown) {
    const error = asApiError(log, thrown, call);
    record.error = error.code;
    addConclusion(interceptors, call);
    throw connectError(error, call);
  }
}

async function run(
  { admit, invoke }: Interceptors,
  call: Call,
  message: Message,
  check: Checked['check'],
): Promise<Message> {
  await admit(call);
  // Nobody waits for it any more: better not begun.
  call.signal().throwIfAborted();
  check(message);
  return invoke(call, message);
}

function addConclusion({ conclude }: Interceptors, call: Call): void {
  const headers = conclude(call);
  for (let i = 0; i < headers.length; i += 2) {
    call.responseHeaders.set(headers[i] as string, headers[i + 1] as string);
  }
}

/** Connect's answer to a GET may be kept by its caller's own cache, but not be used again unasked. */
function allowNoReuse({ res }: RequestRecord, headers: Headers): void {
  const vary = res.getHeader('vary');
  headers.set('vary', vary === undefined ? 'accept-encoding' : `${vary}, accept-encoding`);
  headers.set('cache-control', 'private, no-cache');
}

/** The record of the request that an RPC came in; throws when `connectContext` did not hand it over. */
export function getRecord(values: ContextValues | undefined): RequestRecord {
  const record = values?.get(recordKey);
  if (record === undefined) throw new Error('a request reached Connect without its record');
  return record;
}

/** The protocol that a content type stands for. */
export function surfaceOf(contentType: string | null): Surface {
  if (contentType?.startsWith('application/grpc-web')) return 'grpc-web';
  return contentType?.startsWith('application/grpc') ? 'grpc' : 'connect';
}
