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
import { ErrorCode } from '../../gen/attestation/v1/errors_pb.js';
import { ApiError } from '../errors.js';
import { connectError } from './connect-error.js';
import { errorEnvelope } from './envelope.js';
import { internalError } from './failure.js';
import type { RequestRecord } from './requests.js';

const ENVELOPE_HEAD_BYTES = 5;
/** Connect's errors quote what they could not read, escaped: six bytes for each of a body of the permitted size. */
const MAX_ERROR_BYTES = 8 * 1024 * 1024;
const MAX_MESSAGE_CHARACTERS = 500;
/** What Connect calls internal though the caller sent it. */
const UNREADABLE = /^parse binary|envelope|^decompression failed/;

/**
 * Gives the errors that Connect itself answers with (bad bytes, a body too large, an unknown compression) the same
 * form as ours: a code of the catalogue in an `ErrorDetail`. Answers that succeeded, and our own errors, pass through.
 */
export async function completeError(
  response: UniversalServerResponse,
  record: RequestRecord,
): Promise<UniversalServerResponse> {
  if (record.error !== undefined) return response;
  if (record.surface === 'grpc') return completeGrpc(response, record);
  if (record.surface === 'grpc-web') return completeGrpcWeb(response, record);
  if (response.status < 400) return response;
  return response.body === undefined ? refusal(response, record) : completeConnect(response, record);
}

function completeGrpc(response: UniversalServerResponse, record: RequestRecord): UniversalServerResponse {
  if (response.trailer === undefined) return refusal(response, record);
  const error = findTrailerError(response.trailer);
  if (error !== undefined) setTrailerStatus(response.trailer, completed(error, record));
  return response;
}

/** On gRPC-Web the trailers are the last frame of the body; a failed unary call has no other. */
async function completeGrpcWeb(
  response: UniversalServerResponse,
  record: RequestRecord,
): Promise<UniversalServerResponse> {
  if (response.body === undefined) return refusal(response, record);
  if (record.call !== undefined) return response;
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

/** An answer with a status and nothing else, for what is no call at all: the envelope of REST says why. */
function refusal(response: UniversalServerResponse, record: RequestRecord): UniversalServerResponse {
  const code =
    response.status === 415 ? ErrorCode.REQUEST_UNSUPPORTED_MEDIA_TYPE : ErrorCode.REQUEST_METHOD_NOT_ALLOWED;
  const message =
    response.status === 415
      ? 'the content type is none of Connect, gRPC or gRPC-Web'
      : 'this RPC is called by POST';
  record.error = code;
  const body = Buffer.from(errorEnvelope(code, message, record.requestId));
  const header = new Headers(response.header);
  header.set('content-type', 'application/json');
  header.set('x-request-id', record.requestId);
  if (response.status === 405) header.set('allow', 'POST');
  return { ...response, header, body: createAsyncIterable([body]) };
}

function completed(error: ConnectError, record: RequestRecord): ConnectError {
  const code = codeOf(error);
  record.error = code;
  const told =
    code === ErrorCode.SERVICE_INTERNAL
      ? internalError(record.requestId, error)
      : new ApiError(code, error.rawMessage.slice(0, MAX_MESSAGE_CHARACTERS));
  const call = { requestId: record.requestId, responseHeaders: new Map<string, string>() };
  // gRPC wants `unimplemented` for an encoding it does not know, which is not the catalogue's code for it.
  if (code === ErrorCode.REQUEST_UNSUPPORTED_MEDIA_TYPE) return connectError(told, call, error.code);
  return connectError(told, call);
}

/** Connect's errors before the handler is reached, told apart by status and, where that says too little, by text. */
function codeOf({ code, rawMessage }: ConnectError): ErrorCode {
  if (UNREADABLE.test(rawMessage)) return ErrorCode.REQUEST_INVALID;
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
