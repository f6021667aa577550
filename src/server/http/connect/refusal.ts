import { Code, type ConnectError } from '@connectrpc/connect';
import { codeToHttpStatus, errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import { trailerSerialize } from '@connectrpc/connect/protocol-grpc-web';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { ApiError } from '../../core/errors.js';
import { writeError } from '../rest/write-response.js';
import type { RequestRecord } from '../socket/requests.js';
import { connectError, setGrpcMessage } from './connect-error.js';
import { envelope } from './envelope.js';
import { protocolOf } from './message-format.js';
import type { RpcResponse } from './write-rpc.js';

/** What a response takes of its call. */
export type Answered = { requestId: string; responseHeaders: ReadonlyMap<string, string> };

const GRPC = /^application\/grpc(-web)?(?=$|[+;])/;
const TRAILER_FLAG = 0x80;

/** The response that rejects a call, in the form of its protocol. Records the error in the request's record. */
export function refusalResponse(record: RequestRecord, call: Answered, error: ApiError): RpcResponse {
  record.error = error.code;
  // gRPC wants `unimplemented` for an encoding it does not know, which is not the catalogue's code for it.
  const isUnknownEncoding = error.code === ErrorCode.REQUEST_UNSUPPORTED_MEDIA_TYPE;
  const status = connectError(error, call, isUnknownEncoding ? Code.Unimplemented : undefined);
  return statusResponse(record, status);
}

/** The error in the form of the request's protocol. */
export function statusResponse({ protocol, req }: RequestRecord, error: ConnectError): RpcResponse {
  if (protocol === 'connect') {
    const headers = [...error.metadata, ['content-type', 'application/json']].flat();
    return { status: codeToHttpStatus(error.code), headers, body: errorToJsonBytes(error, undefined) };
  }
  const headers = ['content-type', req.headers['content-type'] ?? ''];
  if (protocol === 'grpc') return { status: 200, headers, trailers: grpcTrailers(error) };
  return { status: 200, headers, body: webTrailers(error) };
}

/** The trailers of gRPC, of a failed call or of one that did not fail. */
export function grpcTrailers(error: ConnectError | undefined): Record<string, string> {
  return Object.fromEntries(setGrpcMessage(setTrailerStatus(new Headers(), error)));
}

/** The same as the last frame of a body, on gRPC-Web. */
export function webTrailers(error: ConnectError | undefined): Buffer {
  return envelope(TRAILER_FLAG, trailerSerialize(new Headers(grpcTrailers(error))));
}

/** Rejects a content type, in the form of REST: it is of no protocol of RPCs. */
export function refuseFormat(record: RequestRecord): void {
  const message = 'the content type is none of Connect, gRPC or gRPC-Web';
  writeError(record, new ApiError(ErrorCode.REQUEST_UNSUPPORTED_MEDIA_TYPE, message));
}

/** Answers OPTIONS with the methods that an RPC allows and rejects the others. */
export function otherMethod(httpMethods: readonly string[], record: RequestRecord): void {
  const { req, res, requestId } = record;
  record.protocol = protocolOf(req.headers['content-type']);
  const allow = [...httpMethods, 'OPTIONS'].join(', ');
  if (req.method !== 'OPTIONS') {
    const message = `this RPC is called by ${httpMethods.join(' or ')}`;
    writeError(record, new ApiError(ErrorCode.REQUEST_METHOD_NOT_ALLOWED, message, {}, { allow }));
    return;
  }
  res.setHeader('allow', allow);
  res.setHeader('x-request-id', requestId);
  res.statusCode = 204;
  res.end();
}

/** Whether a request expects a response of gRPC or gRPC-Web. */
export function wantsGrpc({ req }: RequestRecord): boolean {
  return GRPC.test(req.headers['content-type'] ?? '');
}

/** Rejects a gRPC or gRPC-Web call of an unknown method, with headers only. */
export function refuseUnknownRpc(record: RequestRecord): void {
  const { req, res, requestId } = record;
  const [contentType = ''] = GRPC.exec(req.headers['content-type'] ?? '') ?? [];
  record.protocol = contentType === 'application/grpc' ? 'grpc' : 'grpc-web';
  record.error = ErrorCode.ROUTE_NOT_FOUND;
  const error = new ApiError(record.error, 'no RPC has this name');
  const status = connectError(error, { requestId, responseHeaders: new Map() });
  for (const [name, value] of Object.entries(grpcTrailers(status))) res.setHeader(name, value);
  res.setHeader('content-type', contentType);
  res.statusCode = 200;
  res.end();
}
