import type { DescMethodUnary, Message } from '@bufbuild/protobuf';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import type { Call, HandlerResponse } from '../../core/call.js';
import { ApiError, internalError } from '../../core/errors.js';
import type { Admit, Interceptors } from '../call/interceptors.js';
import { closeSignal, newCall } from '../call/new-call.js';
import type { ServiceEntry } from '../services.js';
import { ClientGone, type HoldBytes, type Holder, type HoldResponse } from '../socket/bodies.js';
import { createSendQueue } from '../socket/end-of-tick.js';
import type { RequestRecord } from '../socket/requests.js';
import { type HttpResponse, writeResponse } from '../socket/write-response.js';
import { readBody } from './request.js';
import { compressIfAccepted, errorResponse, mayBeCompressed, successResponse } from './response.js';
import { compileRoutes, type Route } from './route.js';
import { createRouter, type Match, type Router } from './router.js';

/** Dependencies of the REST handler. */
export type RestOptions = {
  services: readonly ServiceEntry[];
  /** Rejects, or returns, the refusal of a call by credentials, scope or rate. The body is not read before. */
  admit: Admit;
  /** Checks the message and calls the handler. */
  invoke: (call: Call, message: Message) => Promise<HandlerResponse>;
  /** Rate-limit response headers as a flat [name, value, …] list. Called once, right before sending. */
  rateHeaders: (call: Call) => string[];
  /** Counts a request without a route and sets its rate-limit headers. Undefined of one without credentials. */
  countUnrouted?: Interceptors['countUnrouted'];
  /** Maximum of any request body; the bound of its message may be lower. A larger one is 413. */
  maxBodyBytes: number;
  /** Counts the bytes of bodies until their requests are responded to. */
  holdFor: (holder: Holder) => HoldBytes;
  /** Counts the bytes of responses until they are sent. */
  holdResponse: HoldResponse;
  /** Reports a failure that is no `ApiError`; the caller gets only the request id. */
  onInternalError: (error: unknown, requestId: string) => void;
};

/** The REST API of some services. */
type RestHandler = {
  /** Responds to a request, with 404 if no route matches. Never rejects. */
  handle: (exchange: Exchange) => Promise<void>;
  /** Responds with an error in place of the pending response, which is dropped. */
  refuse: (exchange: Exchange, error: ApiError) => void;
  /** Its routes: HTTP method, path template, RPC. */
  routes: readonly { method: string; path: string; rpc: DescMethodUnary }[];
};

const NO_BODY = new Uint8Array();

/** A request under way; its protocol, call and error are recorded in it. */
type Exchange = Pick<
  RequestRecord,
  'req' | 'res' | 'requestId' | 'startedMs' | 'peer' | 'protocol' | 'call' | 'timesOut' | 'error'
>;

/**
 * Serves RPCs by their `google.api.http` options. Compiles everything now: throws an Error that names the RPC when
 * its options do not fit its messages, and when two RPCs share a path and method.
 */
export function createRestHandler(options: RestOptions): RestHandler {
  const routes = compileRoutes(options.services, options.maxBodyBytes);
  const router = createRouter<Route>();
  for (const route of routes) router.add(route.binding.httpMethod, route.binding.template, route);
  const send = createSendQueue();
  return {
    routes: routes.map(({ binding, method }) => ({
      method: binding.httpMethod,
      path: binding.template.source,
      rpc: method,
    })),
    async handle(exchange) {
      exchange.protocol = 'rest';
      exchange.timesOut = true;
      try {
        const [path, query] = splitTarget(exchange.req.url ?? '');
        const match = router.find(exchange.req.method ?? '', path);
        if (match === undefined) await options.countUnrouted?.(exchange);
        const found =
          match === undefined
            ? unmatchedResponse(router, path, exchange)
            : await respond(options, match, query, exchange);
        if (found instanceof ApiError) return respondWithError(options, exchange, found);
        if (exchange.req.method !== 'HEAD') options.holdResponse(exchange, found.body?.byteLength ?? 0);
        const response = mayBeCompressed(found) ? await compressIfAccepted(exchange, found) : found;
        send(() => writeOrFail(options, exchange, response));
      } catch (error) {
        respondWithError(options, exchange, error);
      }
    },
    refuse: (exchange, error) => respondWithError(options, exchange, error),
  };
}

function writeOrFail(options: RestOptions, exchange: Exchange, response: HttpResponse): void {
  try {
    writeResponse(exchange.req, exchange.res, response);
  } catch (error) {
    respondWithError(options, exchange, error);
  }
}

/** The path of a request target, and its query. */
function splitTarget(target: string): [string, string] {
  const mark = target.indexOf('?');
  return mark < 0 ? [target, ''] : [target.slice(0, mark), target.slice(mark + 1)];
}

async function respond(
  options: RestOptions,
  { target: route, segments }: Match<Route>,
  query: string,
  exchange: Exchange,
): Promise<HttpResponse | ApiError> {
  const { req, res } = exchange;
  const call = newCall(route, exchange, closeSignal(res));
  exchange.call = call;
  const admitted = options.admit(call);
  if (admitted instanceof ApiError) return admitted;
  await admitted;
  const { request, bound, readItems } = route;
  const hold = options.holdFor({ res, call });
  const received = await readBody(req, request.bodyKind, bound.maxBytes, hold);
  call.nextItem = readItems?.(received, 'rest');
  const message = request.read({
    segments,
    query,
    body: call.nextItem === undefined ? received : NO_BODY,
    contentType: req.headers['content-type'] ?? '',
    maxValues: bound.maxValues,
  });
  const response = await options.invoke(call, message);
  return successResponse(route, req.method, callHeaders(options, call), call, response);
}

/** The response headers of a call as a flat [name, value, …] list. */
function callHeaders({ rateHeaders }: RestOptions, call: Call): string[] {
  const headers = rateHeaders(call);
  for (const [name, value] of call.responseHeaders) headers.push(name, value);
  return headers;
}

/** The response if no route matches: the allowed methods for OPTIONS, an error, which is not thrown, for others. */
function unmatchedResponse(
  router: Router<Route>,
  path: string,
  { req, requestId }: Exchange,
): HttpResponse | ApiError {
  const allow = router.allowedMethods(path).join(', ');
  if (allow === '') return noRoute(router, path);
  if (req.method !== 'OPTIONS') {
    const message = `this path has no ${req.method}, only ${allow}`;
    return new ApiError(ErrorCode.REQUEST_METHOD_NOT_ALLOWED, message, {}, { allow });
  }
  return {
    status: 204,
    headers: ['allow', allow, 'x-request-id', requestId],
    body: undefined,
    etag: undefined,
  };
}

function noRoute(router: Router<Route>, path: string): ApiError {
  const isSlashTooMany = path.endsWith('/') && router.allowedMethods(path.slice(0, -1)).length > 0;
  const hint = isSlashTooMany ? ': leave out the slash at its end' : '';
  return new ApiError(ErrorCode.ROUTE_NOT_FOUND, `no endpoint has this path${hint}`);
}

function respondWithError(options: RestOptions, exchange: Exchange, error: unknown): void {
  const { req, res, requestId, call } = exchange;
  if (error instanceof ClientGone) return;
  // The caller has disconnected: the failure is no error, and a response has no receiver.
  if (!(error instanceof ApiError) && call?.signal().aborted) return;
  if (!(error instanceof ApiError)) options.onInternalError(error, requestId);
  if (res.writableEnded) return;
  if (res.headersSent) {
    res.destroy();
    return;
  }
  const apiError = error instanceof ApiError ? error : internalError(requestId, error);
  exchange.error = apiError.code;
  try {
    writeResponse(
      req,
      res,
      errorResponse(apiError, requestId, call === undefined ? [] : callHeaders(options, call)),
    );
  } catch (failure) {
    // A header of the call is invalid in HTTP: respond without them.
    options.onInternalError(failure, requestId);
    writeResponse(req, res, errorResponse(internalError(requestId, failure), requestId, []));
  }
}
