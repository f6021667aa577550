import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';
import type { DescMessage } from '@bufbuild/protobuf';
import type { HttpBody } from '../../../../gen/google/api/httpbody_pb.js';
import { errorRules } from '../../../protocol/error-rules.js';
import { type Call, type HandlerResponse, isSerialized, messageOf } from '../../core/call.js';
import type { ApiError } from '../../core/errors.js';
import { conciseProblem } from '../../core/http/concise-problem.js';
import { assertMatch, etagOf, isNoneMatch } from '../../core/http/etag.js';
import { acceptsGzip, MIN_COMPRESSED_BYTES } from '../../core/http/gzip.js';
import { compileFieldWriter, compileWriter } from '../../json/codec.js';
import { asFields, findFieldValue } from '../../json/message-codec.js';
import type { RequestRecord } from '../socket/requests.js';
import { errorEnvelope, type HttpResponse } from '../socket/write-response.js';
import { isHttpBody } from './request.js';

/** A response's body, content type, and entity tag if it is known already. */
type ResponseBody = { contentType: string; body: Uint8Array; etag?: string | undefined };

/** How the responses of a route are made. */
export type ResponseRules = {
  bodyOf: (response: HandlerResponse) => ResponseBody;
  successStatus: number;
  /** Whether responses carry a strong ETag. */
  hasEtag: boolean;
};

const EMPTY = new Uint8Array();
const JSON_TYPE = 'application/json';
/** Whether a private cache may store a response: never, or revalidated by its entity tag before each use. */
const NO_STORE = 'no-store';
const REVALIDATE = 'private, no-cache';
const compress = promisify(gzip);

/** Compiles the serialiser of an RPC's responses. Throws if the type has no JSON, or has no field of this name. */
export function compileResponse(
  desc: DescMessage,
  responseBody: string,
): (response: HandlerResponse) => ResponseBody {
  if (responseBody === '') {
    if (isHttpBody(desc)) return (response) => rawBody(messageOf(response) as HttpBody);
    const write = compileWriter(desc);
    return (response) => {
      if (!isSerialized(response)) return jsonBody(write(response));
      const { bytes, etag } = response.json();
      return { contentType: JSON_TYPE, body: bytes, etag };
    };
  }
  const field = desc.fields.find(({ name }) => name === responseBody);
  if (field === undefined) throw new Error(`${desc.typeName} has no field ${responseBody} for the answer`);
  if (field.fieldKind === 'message' && isHttpBody(field.message)) {
    return (response) =>
      rawBody(findFieldValue(field, asFields(messageOf(response))) as HttpBody | undefined);
  }
  const write = compileFieldWriter(field);
  return (response) => jsonBody(write(asFields(messageOf(response))));
}

/** Encoded at once: a concatenated string takes twice as long to send. */
function jsonBody(text: string): ResponseBody {
  return { contentType: JSON_TYPE, body: Buffer.from(text) };
}

function rawBody(body: HttpBody | undefined): ResponseBody {
  return {
    contentType: body?.contentType || 'application/octet-stream',
    body: body?.data ?? new Uint8Array(),
  };
}

/**
 * The response to a successful call: the route's status, or 304 if `If-None-Match` matches. Throws
 * `request.precondition_failed` if `If-Match` does not match.
 *
 * @param headers those of the call; the response's are added to them
 */
export function successResponse(
  route: ResponseRules,
  httpMethod: string | undefined,
  headers: string[],
  call: Call,
  response: HandlerResponse,
): HttpResponse {
  const { contentType, body, etag: known } = route.bodyOf(response);
  headers.push('x-request-id', call.requestId, 'x-content-type-options', 'nosniff');
  headers.push('cache-control', route.hasEtag ? REVALIDATE : NO_STORE);
  if (route.successStatus === 204) return { status: 204, headers, body: undefined, etag: undefined };
  const etag = route.hasEtag ? (known ?? etagOf(body)) : undefined;
  const isRead = httpMethod === 'GET' || httpMethod === 'HEAD';
  if (etag !== undefined && isRead) assertMatch(call.header('if-match'), etag);
  if (etag !== undefined && isRead && isNoneMatch(call.header('if-none-match'), etag)) {
    return { status: 304, headers, body: undefined, etag };
  }
  if (call.pendingStatus !== undefined) return { status: call.pendingStatus, headers, body: EMPTY, etag };
  headers.push('content-type', contentType);
  return { status: route.successStatus, headers, body, etag };
}

/**
 * The response to a rejected or failed request: the error envelope, or concise problem details if its method has them.
 *
 * @param headers those of its call
 */
export function errorResponse(
  error: ApiError,
  requestId: string,
  headers: readonly string[],
  isConcise = false,
): HttpResponse {
  const { contentType, body } = isConcise
    ? conciseProblem(error, requestId)
    : jsonBody(errorEnvelope(error.code, error.message, requestId, error.details));
  const all = [...headers];
  for (const name of Object.keys(error.headers)) all.push(name, error.headers[name] as string);
  all.push('content-type', contentType, 'x-request-id', requestId);
  all.push('x-content-type-options', 'nosniff', 'cache-control', NO_STORE);
  return { status: errorRules(error.code).httpStatus, headers: all, body, etag: undefined };
}

/** Whether a response is large enough to be compressed, or stands for one that may be. */
export function mayBeCompressed({ status, body }: HttpResponse): boolean {
  return status === 304 || (body !== undefined && body.byteLength >= MIN_COMPRESSED_BYTES);
}

/**
 * Compresses a response that may be compressed if the client accepts gzip. The entity tag is over the uncompressed bytes, so the
 * compressed response has the weak one (RFC 9110, 8.8.1).
 */
export async function compressIfAccepted(
  { req, res }: Pick<RequestRecord, 'req' | 'res'>,
  answer: HttpResponse,
): Promise<HttpResponse> {
  const { headers, body } = answer;
  const vary = res.getHeader('vary');
  headers.push('vary', vary === undefined ? 'accept-encoding' : `${vary}, accept-encoding`);
  const accepted = req.headers['accept-encoding'];
  return body === undefined || !acceptsGzip(accepted) ? answer : compressed(answer, body);
}

async function compressed({ status, headers, etag }: HttpResponse, body: Uint8Array): Promise<HttpResponse> {
  headers.push('content-encoding', 'gzip');
  const smaller = await compress(body, { level: constants.Z_BEST_SPEED });
  return { status, headers, body: smaller, etag: etag && `W/${etag}` };
}
