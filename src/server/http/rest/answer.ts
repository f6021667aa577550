import { errorRules } from '../../../protocol/error-rules.js';
import type { Call, HandlerResponse } from '../../core/call.js';
import type { ApiError } from '../../core/errors.js';
import { etagOf, isNoneMatch } from '../../core/etag.js';
import { errorEnvelope } from './envelope.js';
import { jsonPayload } from './response.js';
import type { Route } from './route.js';
import type { Answer } from './send.js';

/** What a caller's own cache may do: nothing, or keep an answer and ask by its entity tag before using it again. */
const NO_STORE = 'no-store';
const ASK_AGAIN = 'private, no-cache';

/**
 * The answer to a call that went well: the route's status, or 304 when the client has these very bytes.
 *
 * @param headers those of the call, which are added to
 */
export function successAnswer(
  route: Route,
  httpMethod: string | undefined,
  headers: string[],
  call: Call,
  response: HandlerResponse,
): Answer {
  const { contentType, body, etag: known } = route.writeResponse(response);
  headers.push('x-request-id', call.requestId, 'x-content-type-options', 'nosniff');
  headers.push('cache-control', route.hasEtag ? ASK_AGAIN : NO_STORE);
  if (route.successStatus === 204) return { status: 204, headers, body: undefined, etag: undefined };
  const etag = route.hasEtag ? (known ?? etagOf(body)) : undefined;
  const isRead = httpMethod === 'GET' || httpMethod === 'HEAD';
  if (etag !== undefined && isRead && isNoneMatch(call.header('if-none-match'), etag)) {
    return { status: 304, headers, body: undefined, etag };
  }
  headers.push('content-type', contentType);
  return { status: route.successStatus, headers, body, etag };
}

/**
 * The answer to a request that was refused or failed: the error envelope.
 *
 * @param headers those of its call
 */
export function errorAnswer(error: ApiError, requestId: string, headers: readonly string[]): Answer {
  const { contentType, body } = jsonPayload(
    errorEnvelope(error.code, error.message, requestId, error.details),
  );
  const own = {
    ...error.headers,
    'content-type': contentType,
    'x-request-id': requestId,
    'x-content-type-options': 'nosniff',
    'cache-control': NO_STORE,
  };
  return {
    status: errorRules(error.code).httpStatus,
    headers: [...headers, ...Object.entries(own).flat()],
    body,
    etag: undefined,
  };
}
