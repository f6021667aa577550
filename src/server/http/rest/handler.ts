import type { Message } from '@bufbuild/protobuf';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import type { Call, HandlerResponse } from '../../core/call.js';
import { ApiError, internalError } from '../../core/errors.js';
import { invalidRequest } from '../../json/problems.js';
import type { Admit, Interceptors } from '../call/interceptors.js';
import { closeSignal, newCall } from '../call/new-call.js';
import { isRest } from '../request-target.js';
import type { ServiceEntry } from '../services.js';
import { ClientGone, type HoldBytes, type Holder, type HoldResponse } from '../socket/bodies.js';
import { createSendQueue } from '../socket/end-of-tick.js';
import type { RequestRecord } from '../socket/requests.js';
import { type HttpResponse, writeResponse } from '../socket/write-response.js';
import { readBody } from './request.js';
import { compressIfAccepted, errorResponse, mayBeCompressed, successResponse } from './response.js';
import { compileRoutes, type Route } from './route.js';

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
export type RestHandler = {
  routes: readonly Route[];
  /** Responds to a request for a route. Never rejects. */
  serve: (route: Route, exchange: Exchange) => Promise<void>;
  /** Responds to a request that no route has matched. Never rejects. */
  notFound: (exchange: Exchange) => Promise<void>;
  /** Responds with an error in place of the pending response, which is dropped. */
  refuse: (exchange: Exchange, error: ApiError) => void;
};

const NO_BODY = new Uint8Array();
const NOT_ENCODED = 'has a path that is not percent-encoded UTF-8';

/** A request under way; its protocol, call and error are recorded in it. */
type Exchange = Pick<
  RequestRecord,
  'req' | 'res' | 'requestId' | 'startedMs' | 'peer' | 'protocol' | 'route' | 'call' | 'timesOut' | 'error'
>;

/**
 * Serves RPCs by their `google.api.http` options. Compiles everything now: throws an Error that names the RPC when
 * its options do not fit its messages, and when two RPCs share a path and method.
 */
export function createRestHandler(options: RestOptions): RestHandler {
  const routes = compileRoutes(options.services, options.maxBodyBytes);
  const send = createSendQueue();
  const handle = async (exchange: Exchange, respond: () => Promise<HttpResponse | ApiError>) => {
    exchange.protocol = 'rest';
    exchange.timesOut = true;
    try {
      const found = await respond();
      if (found instanceof ApiError) return respondWithError(options, exchange, found);
      if (exchange.req.method !== 'HEAD') options.holdResponse(exchange, found.body?.byteLength ?? 0);
      const response = mayBeCompressed(found) ? await compressIfAccepted(exchange, found) : found;
      send(() => writeOrFail(options, exchange, response));
    } catch (error) {
      respondWithError(options, exchange, error);
    }
  };
  const notFound = (exchange: Exchange) =>
    handle(exchange, async () => {
      await options.countUnrouted?.(exchange);
      return unmatchedResponse(routes, exchange);
    });
  return {
    routes,
    serve(route, exchange) {
      const [path, query] = splitTarget(exchange.req.url ?? '');
      const segments = path.slice(1).split('/');
      if (hasEmptyName(route, segments)) return notFound(exchange);
      return handle(exchange, () => respond(options, { route, segments, query }, exchange));
    },
    notFound,
    refuse: (exchange, error) => respondWithError(options, exchange, error),
  };
}

/** Whether a segment that is to name something is empty: `/books/` is not a book without a name. */
function hasEmptyName({ binding }: Route, segments: readonly string[]): boolean {
  return binding.template.segments.some(({ kind }, index) => kind === 'one' && segments[index] === '');
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

/** A route, and the parts of a request target that it reads, as they were sent. */
type Match = { route: Route; segments: readonly string[]; query: string };

async function respond(
  options: RestOptions,
  { route, segments, query }: Match,
  exchange: Exchange,
): Promise<HttpResponse | ApiError> {
  const { req, res } = exchange;
  const call = newCall(route, exchange, closeSignal(res));
  exchange.call = call;
  exchange.route = route.binding.template.source;
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
  routes: readonly Route[],
  { req: { method, url }, requestId }: Exchange,
): HttpResponse | ApiError {
  const [sent] = splitTarget(url ?? '');
  const path = decodePath(sent);
  if (path === undefined && isRest(sent)) return invalidRequest([{ path: '', message: NOT_ENCODED }]);
  if (path === undefined) return noRoute(routes, sent);
  const allow = allowedMethods(routes, path).join(', ');
  if (allow === '') return noRoute(routes, path);
  if (method !== 'OPTIONS') {
    const message = `this path has no ${method}, only ${allow}`;
    return new ApiError(ErrorCode.REQUEST_METHOD_NOT_ALLOWED, message, {}, { allow });
  }
  return {
    status: 204,
    headers: ['allow', allow, 'x-request-id', requestId],
    body: undefined,
    etag: undefined,
  };
}

function noRoute(routes: readonly Route[], path: string): ApiError {
  const isSlashTooMany = path.endsWith('/') && allowedMethods(routes, path.slice(0, -1)).length > 0;
  const hint = isSlashTooMany ? ': leave out the slash at its end' : '';
  return new ApiError(ErrorCode.ROUTE_NOT_FOUND, `no endpoint has this path${hint}`);
}

const METHOD_ORDER = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/** The methods of a path, as the `Allow` header names them; empty when no route has it. */
function allowedMethods(routes: readonly Route[], path: string): string[] {
  const methods = new Set<string>();
  for (const { paths, binding } of routes) if (paths.test(path)) methods.add(binding.httpMethod);
  if (methods.size > 0) methods.add('OPTIONS');
  if (methods.has('GET')) methods.add('HEAD');
  const known = METHOD_ORDER.filter((method) => methods.has(method));
  return [...known, ...[...methods].filter((method) => !METHOD_ORDER.includes(method)).sort()];
}

/** A path as the router compares it: percent-encoded are only reserved characters. Undefined when it is malformed. */
function decodePath(path: string): string | undefined {
  try {
    return decodeURI(path);
  } catch {
    return undefined;
  }
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
      errorResponse(
        apiError,
        requestId,
        call === undefined ? [] : callHeaders(options, call),
        call?.rules.conciseProblems,
      ),
    );
  } catch (failure) {
    // A header of the call is invalid in HTTP: respond without them.
    options.onInternalError(failure, requestId);
    writeResponse(req, res, errorResponse(internalError(requestId, failure), requestId, []));
  }
}
