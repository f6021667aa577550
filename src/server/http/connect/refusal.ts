import type { IncomingHttpHeaders } from 'node:http';
import { ConnectError } from '@connectrpc/connect';
import { codeToHttpStatus, errorToJson } from '@connectrpc/connect/protocol-connect';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { ApiError } from '../../core/errors.js';
import type { RequestRecord } from '../socket/requests.js';
import { writeError } from '../socket/write-response.js';
import { ErrorStatus, type RpcStatus } from './connect-error.js';
import { grpcTrailers, webTrailers } from './grpc-status.js';
import { findFormat, protocolOf } from './messages.js';
import { type RpcResponse, writeRpcResponse } from './response.js';

const UNARY = /^application\/(json|proto)(?=$|;)/;
const GRPC = /^application\/grpc(-web)?(?=$|[+;])/;

/** The response that rejects a call, in the form of its protocol. Records the error in the request's record. */
export function refusalResponse(
  record: RequestRecord,
  error: ApiError,
  responseHeaders?: ReadonlyMap<string, string>,
): RpcResponse {
  record.error = error.code;
  return statusResponse(record, new ErrorStatus(error, record.requestId, responseHeaders));
}

/** The status in the form of the request's protocol. */
export function statusResponse({ protocol, req }: RequestRecord, status: RpcStatus): RpcResponse {
  if (protocol === 'connect') {
    const headers = [...Object.entries(status.metadata).flat(), 'content-type', 'application/json'];
    const body = Buffer.from(JSON.stringify(connectStatus(status)));
    return { status: codeToHttpStatus(status.code), headers, body };
  }
  const headers = ['content-type', req.headers['content-type'] ?? ''];
  if (protocol === 'grpc') return { status: 200, headers, trailers: grpcTrailers(status) };
  return { status: 200, headers, body: webTrailers(status) };
}

/** The JSON of a status on Connect. */
function connectStatus({ code, message, details }: RpcStatus): ReturnType<typeof errorToJson> {
  const error = new ConnectError(message, code);
  error.details = details.map(({ desc, message: value }) => ({ desc, value }));
  return errorToJson(error, undefined);
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

/** Whether a request expects a response of gRPC, gRPC-Web or, by its version header, Connect. */
export function wantsRpc({ req }: RequestRecord): boolean {
  return GRPC.test(req.headers['content-type'] ?? '') || isConnect(req.headers);
}

function isConnect(headers: IncomingHttpHeaders): boolean {
  return headers['connect-protocol-version'] !== undefined && UNARY.test(headers['content-type'] ?? '');
}

/** Rejects a request before anything is known of it but its headers, in the form that these ask for. */
export function refuseEarly(record: RequestRecord, error: ApiError): void {
  if (!wantsRpc(record)) {
    writeError(record, error);
    return;
  }
  record.protocol = protocolOf(record.req.headers['content-type']);
  writeRpcResponse(record, refusalResponse(record, error));
}

/** Rejects a call of an unknown method; on gRPC and gRPC-Web with headers only. */
export function refuseUnknownRpc(record: RequestRecord): void {
  const { req, res, requestId } = record;
  const type = req.headers['content-type'];
  record.protocol = protocolOf(type);
  record.error = ErrorCode.ROUTE_NOT_FOUND;
  const error = new ApiError(record.error, 'no RPC has this name');
  const status = new ErrorStatus(error, requestId);
  if (record.protocol === 'connect') {
    // Connect's clients take this HTTP status for an unknown method and ignore the body.
    writeRpcResponse(record, { ...statusResponse(record, status), status: 404 });
    return;
  }
  for (const [name, value] of Object.entries(grpcTrailers(status))) res.setHeader(name, value);
  // Strict clients take no other type than the one they sent.
  res.setHeader(
    'content-type',
    findFormat(type) === undefined ? `application/${record.protocol}` : (type ?? ''),
  );
  res.statusCode = 200;
  res.end();
}
