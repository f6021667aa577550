import type { ServerResponse } from 'node:http';
import { Code, type ConnectError } from '@connectrpc/connect';
import { encodeEnvelope } from '@connectrpc/connect/protocol';
import { codeToHttpStatus, errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import { trailerFlag, trailerSerialize } from '@connectrpc/connect/protocol-grpc-web';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import type { Call } from '../../core/call.js';
import { ApiError } from '../../core/errors.js';
import type { Logger } from '../../core/logger.js';
import type { Interceptors } from '../call/interceptors.js';
import { writeResponse } from '../rest/write-response.js';
import { ClientGone } from '../socket/read-body.js';
import type { NodeRequest, NodeResponse, RequestRecord } from '../socket/requests.js';
import { asApiError, connectError, setGrpcMessage } from './connect-error.js';

/** A whole response to an RPC; `headers` alternate names and values. */
export type RpcResponse = { status: number; headers: string[]; body?: Uint8Array; trailer?: Headers };

const GRPC = /^application\/grpc(-web)?(?=$|[+;])/;

/** Rejects a call before its message is parsed, in the form of its protocol. */
export function refuseCall(
  { interceptors, log }: { interceptors: Interceptors; log: Logger },
  record: RequestRecord,
  call: Call,
  thrown: unknown,
): void {
  if (thrown instanceof ClientGone) return;
  const error = asApiError(log, thrown, call);
  addRateHeaders(interceptors, call);
  writeRpcResponse(record.req, record.res, refusalResponse(record, call, error));
}

/** The response that rejects a call, in the form of its protocol. Records the error in the request's record. */
export function refusalResponse(record: RequestRecord, call: Call, error: ApiError): RpcResponse {
  record.error = error.code;
  // gRPC wants `unimplemented` for an encoding it does not know, which is not the catalogue's code for it.
  const isUnknownEncoding = error.code === ErrorCode.REQUEST_UNSUPPORTED_MEDIA_TYPE;
  const status = connectError(error, call, isUnknownEncoding ? Code.Unimplemented : undefined);
  return statusResponse(record, status);
}

/** Adds the rate-limit headers to the call's response headers. */
export function addRateHeaders({ rateHeaders }: Interceptors, call: Call): void {
  const headers = rateHeaders(call);
  for (let i = 0; i < headers.length; i += 2) {
    call.responseHeaders.set(headers[i] as string, headers[i + 1] as string);
  }
}

/** The error in the form of the request's protocol. */
function statusResponse({ protocol, req }: RequestRecord, error: ConnectError): RpcResponse {
  if (protocol === 'connect') {
    const headers = [...error.metadata, ['content-type', 'application/json']].flat();
    return { status: codeToHttpStatus(error.code), headers, body: errorToJsonBytes(error, undefined) };
  }
  const trailer = setGrpcMessage(setTrailerStatus(new Headers(), error));
  const headers = ['content-type', req.headers['content-type'] ?? ''];
  if (protocol === 'grpc') return { status: 200, headers, trailer };
  return { status: 200, headers, body: encodeEnvelope(trailerFlag, trailerSerialize(trailer)) };
}

/**
 * Responds to a call whose body may be unread. On HTTP/2 the rest of it is discarded while the client sends it,
 * because gRPC clients report the reset of a stream that they still write to as the call's error.
 */
function writeRpcResponse(req: NodeRequest, nodeRes: NodeResponse, answer: RpcResponse): void {
  const { status, headers, body, trailer } = answer;
  // Both kinds of response have these methods, but TypeScript finds no common signature.
  const res = nodeRes as ServerResponse;
  if (res.destroyed || res.writableEnded) return;
  if (req.httpVersionMajor < 2 && trailer === undefined) {
    writeResponse(req, res, { status, headers, body, etag: undefined });
    return;
  }
  for (let i = 0; i < headers.length; i += 2) res.setHeader(headers[i] as string, headers[i + 1] as string);
  if (body !== undefined) res.setHeader('content-length', body.byteLength);
  req.resume();
  res.writeHead(status);
  if (trailer !== undefined) res.addTrailers(Object.fromEntries(trailer));
  res.end(body);
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
  setGrpcMessage(setTrailerStatus(new Headers(), status)).forEach((value, name) => {
    res.setHeader(name, value);
  });
  res.setHeader('content-type', contentType);
  res.statusCode = 200;
  res.end();
}
