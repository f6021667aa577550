import type { Message } from '@bufbuild/protobuf';
import type { Call } from '../../call.js';
import { type ApiError, errorRules } from '../../errors.js';
import { etagOf, isNoneMatch } from '../../etag.js';
import { errorEnvelope } from '../envelope.js';
import { jsonPayload } from './response.js';
import type { Route } from './route.js';
import type { Answer } from './send.js';

/** What a caller's own cache may do: nothing, or keep an answer and ask by its entity tag before using it again. */
const NO_STORE = 'no-store';
const ASK_AGAIN = 'private, no-cache';

/** The answer to a call that went well: the route's status, or 304 when the client has these very bytes. */
export function successAnswer(
  route: Route,
  httpMethod: string | undefined,
  call: Call,
  message: Message,
): Answer {
  const { contentType, body, etag: known } = route.writeResponse(message);
  if (route.successStatus === 204) return { status: 204, headers: answerHeaders(call), body: undefined };
  const headers = answerHeaders(call, contentType);
  if (!route.hasEtag) return { status: route.successStatus, headers, body };
  const etag = known ?? etagOf(body);
  headers.etag = etag;
  headers['cache-control'] = ASK_AGAIN;
  const isRead = httpMethod === 'GET' || httpMethod === 'HEAD';
  if (!isRead || !isNoneMatch(call.header('if-none-match'), etag)) {
    return { status: route.successStatus, headers, body };
  }
  delete headers['content-type'];
  return { status: 304, headers, body: undefined };
}

/** The answer to a request that was refused or failed: the error envelope, and what the call had to say beside it. */
export function errorAnswer(error: ApiError, requestId: string, call: Call | undefined): Answer {
  const { contentType, body } = jsonPayload(
    errorEnvelope(error.code, error.message, requestId, error.details),
  );
  const headers = newHeaders(contentType);
  if (call !== undefined) for (const [name, value] of call.responseHeaders) headers[name] = value;
  Object.assign(headers, error.headers);
  headers['x-request-id'] = requestId;
  return { status: errorRules(error.code).httpStatus, headers, body };
}

function answerHeaders(call: Call, contentType?: string): Record<string, string> {
  const headers = newHeaders(contentType);
  for (const [name, value] of call.responseHeaders) headers[name] = value;
  headers['x-request-id'] = call.requestId;
  return headers;
}

function newHeaders(contentType: string | undefined): Record<string, string> {
  const headers: Record<string, string> = { 'cache-control': NO_STORE, 'x-content-type-options': 'nosniff' };
  if (contentType !== undefined) headers['content-type'] = contentType;
  return headers;
}
