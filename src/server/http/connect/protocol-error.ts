import { Code, ConnectError } from '@connectrpc/connect';
import {
  createAsyncIterable,
  encodeEnvelope,
  readAllBytes,
  type UniversalServerResponse,
} from '@connectrpc/connect/protocol';
import { codeToHttpStatus, errorFromJsonBytes, errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
import { findTrailerError, setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import { trailerFlag, trailerParse, trailerSerialize } from '@connectrpc/connect/protocol-grpc-web';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { ApiError, internalError } from '../../core/errors.js';
import { invalidRequest } from '../../json/problems.js';
import { errorEnvelope } from '../rest/write-response.js';
import type { RequestRecord } from '../socket/requests.js';
import { connectError, setGrpcMessage } from './connect-error.js';

const ENVELOPE_HEAD_BYTES = 5;
/** Connect's errors quote what they could not read, escaped: six bytes for each of a body of the permitted size. */
const MAX_ERROR_BYTES = 8 * 1024 * 1024;
const MAX_MESSAGE_CHARACTERS = 500;
// Connect gives these errors no code of their own, so that their texts tell them apart. package.json pins the exact
// versions of Connect and protobuf-es, and test/server/http/garbage.test.ts fails when a text changes.
/** Errors that Connect calls internal although the request caused them. */
const UNREADABLE = /^parse binary|envelope|^decompression failed/;
/** Messages of the decoder of `jsonText`, or of JSON.parse behind Connect's own words, for malformed JSON. */
const MALFORMED_JSON =
  /^(?:cannot decode message \S+ from JSON: (?!key ").*\bJSON\b|a JSON text must be in UTF-8)/s;

/**
 * Gives the errors that Connect itself answers with (bad bytes, a body too large, an unknown compression) the same
 * form as ours: a code of the catalogue in an `ErrorDetail`. Successful responses and our own errors pass through.
 *
 * @param httpMethods methods that the RPC accepts
 */
export async function completeError(
  response: UniversalServerResponse,
  record: RequestRecord,
  httpMethods: readonly string[],
): Promise<UniversalServerResponse> {
  if (response.status === 405) return otherMethod(response, record, httpMethods);
  if (record.protocol === 'grpc') return completeGrpc(response, record);
  if (record.error !== undefined) return response;
  if (record.protocol === 'grpc-web') return completeGrpcWeb(response, record);
  if (response.status < 400) return response;
  return response.body === undefined ? refusal(response, record) : completeConnect(response, record);
}

function completeGrpc(response: UniversalServerResponse, record: RequestRecord): UniversalServerResponse {
  const { trailer } = response;
  if (trailer === undefined) return refusal(response, record);
  const error = findTrailerError(trailer);
  if (error === undefined) return response;
  if (record.error === undefined) setTrailerStatus(trailer, completed(error, record));
  setGrpcMessage(trailer);
  return response;
}

/** On gRPC-Web the trailers are the last frame of the body; a failed unary call has no other. */
async function completeGrpcWeb(
  response: UniversalServerResponse,
  record: RequestRecord,
): Promise<UniversalServerResponse> {
  if (response.body === undefined) return refusal(response, record);
  if (record.isInvoked) return response;
  const frame = await readAllBytes(response.body, MAX_ERROR_BYTES);
  const trailer = trailerParse(frame.subarray(ENVELOPE_HEAD_BYTES));
  const error = frame[0] === trailerFlag ? findTrailerError(trailer) : undefined;
  if (error !== undefined) setTrailerStatus(trailer, completed(error, record));
  const body = error === undefined ? frame : encodeEnvelope(trailerFlag, trailerSerialize(trailer));
  return { ...response, body: createAsyncIterable([body]) };
}

async function completeConnect(
  response: UniversalServerResponse & { body?: AsyncIterable<Uint8Array> },
  record: RequestRecord,
): Promise<UniversalServerResponse> {
  const bytes = await readAllBytes(response.body ?? createAsyncIterable([]), MAX_ERROR_BYTES);
  const error = completed(errorFromJsonBytes(bytes, undefined, new ConnectError('unreadable')), record);
  const body = errorToJsonBytes(error, undefined);
  const header = new Headers(response.header);
  error.metadata.forEach((value, name) => {
    header.set(name, value);
  });
  header.set('content-length', String(body.byteLength));
  return { ...response, status: codeToHttpStatus(error.code), header, body: createAsyncIterable([body]) };
}

/** Answers OPTIONS with the allowed methods and rejects the others. */
function otherMethod(
  response: UniversalServerResponse,
  record: RequestRecord,
  httpMethods: readonly string[],
): UniversalServerResponse {
  const allow = [...httpMethods].sort().concat('OPTIONS').join(', ');
  const header = new Headers({ allow, 'x-request-id': record.requestId });
  if (record.req.method === 'OPTIONS') return { ...response, status: 204, header };
  const message = `this RPC is called by ${httpMethods.join(' or ')}`;
  return enveloped({ ...response, header }, record, ErrorCode.REQUEST_METHOD_NOT_ALLOWED, message);
}

/** Gives a response without a body, to a request that is no RPC, the REST error envelope. */
function refusal(response: UniversalServerResponse, record: RequestRecord): UniversalServerResponse {
  const message = 'the content type is none of Connect, gRPC or gRPC-Web';
  return enveloped(response, record, ErrorCode.REQUEST_UNSUPPORTED_MEDIA_TYPE, message);
}

/** The response to a path that only Fastify's router takes for an RPC's. */
export function noSuchRpc(record: RequestRecord): UniversalServerResponse {
  return enveloped({ status: 404 }, record, ErrorCode.ROUTE_NOT_FOUND, 'no RPC has this path');
}

function enveloped(
  response: UniversalServerResponse,
  record: RequestRecord,
  code: ErrorCode,
  message: string,
): UniversalServerResponse {
  record.error = code;
  const body = Buffer.from(errorEnvelope(code, message, record.requestId));
  const header = new Headers(response.header);
  header.set('content-type', 'application/json');
  header.set('x-request-id', record.requestId);
  return { ...response, header, body: createAsyncIterable([body]) };
}

function completed(error: ConnectError, record: RequestRecord): ConnectError {
  const code = codeOf(error);
  record.error = code;
  const apiError = apiErrorOf(code, error, record);
  const call = { requestId: record.requestId, responseHeaders: new Map<string, string>() };
  // gRPC wants `unimplemented` for an encoding it does not know, which is not the catalogue's code for it.
  if (code === ErrorCode.REQUEST_UNSUPPORTED_MEDIA_TYPE) return connectError(apiError, call, error.code);
  return connectError(apiError, call);
}

function apiErrorOf(code: ErrorCode, error: ConnectError, { requestId }: RequestRecord): ApiError {
  const message = error.rawMessage.slice(0, MAX_MESSAGE_CHARACTERS);
  switch (code) {
    case ErrorCode.SERVICE_INTERNAL:
      return internalError(requestId, error);
    case ErrorCode.REQUEST_INVALID:
      return invalidRequest([{ path: '', message: `cannot be read: ${message}` }]);
    case ErrorCode.REQUEST_TOO_LARGE:
      return new ApiError(code, 'the message is larger than 1 MiB');
    default:
      return new ApiError(code, message);
  }
}

/** The error code of an error of Connect's own: by its status and, if that is ambiguous, by its text. */
function codeOf({ code, rawMessage }: ConnectError): ErrorCode {
  if (UNREADABLE.test(rawMessage)) return ErrorCode.REQUEST_INVALID;
  if (MALFORMED_JSON.test(rawMessage)) return ErrorCode.REQUEST_MALFORMED_JSON;
  switch (code) {
    case Code.InvalidArgument:
      return ErrorCode.REQUEST_INVALID;
    case Code.Unimplemented:
      return rawMessage.includes('compression')
        ? ErrorCode.REQUEST_UNSUPPORTED_MEDIA_TYPE
        : ErrorCode.REQUEST_INVALID;
    case Code.ResourceExhausted:
      return rawMessage.includes('writeMaxBytes') ? ErrorCode.SERVICE_INTERNAL : ErrorCode.REQUEST_TOO_LARGE;
    case Code.DeadlineExceeded:
      return ErrorCode.SERVICE_DEADLINE_EXCEEDED;
    default:
      return ErrorCode.SERVICE_INTERNAL;
  }
}
