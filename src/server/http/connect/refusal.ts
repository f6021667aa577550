import type { IncomingHttpHeaders } from 'node:http';
import { Code, type ConnectError } from '@connectrpc/connect';
import { encodeEnvelope } from '@connectrpc/connect/protocol';
import { codeToHttpStatus, errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import { trailerFlag, trailerSerialize } from '@connectrpc/connect/protocol-grpc-web';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { errorRules } from '../../../protocol/error-rules.js';
import { ApiError } from '../../core/errors.js';
import type { RequestRecord } from '../socket/requests.js';
import { writeError, writeResponse } from '../socket/write-response.js';
import { protocolError, toConnectError } from './errors.js';
import { findFormat, protocolOf } from './messages.js';
import { type RpcResponse, writeRpcResponse } from './response.js';

const UNARY = /^application\/(json|proto)(?=$|;)/;
const GRPC = /^application\/grpc(-web)?(?=$|[+;])/;

/** The response to a failed call in the form of the request's protocol; the error's metadata are headers or trailers. */
export function errorResponse({ protocol, req }: RequestRecord, error: ConnectError): RpcResponse {
  if (protocol === 'connect') {
    const headers = [...[...error.metadata].flat(), 'content-type', 'application/json'];
    return { status: codeToHttpStatus(error.code), headers, body: errorToJsonBytes(error, undefined) };
  }
  const trailers = grpcTrailers(error);
  const headers = ['content-type', req.headers['content-type'] ?? ''];
  if (protocol === 'grpc') return { status: 200, headers, trailers: Object.fromEntries(trailers) };
  return { status: 200, headers, body: encodeEnvelope(trailerFlag, trailerSerialize(trailers)) };
}

/** `grpc-message` is encoded as every client decodes it: @grpc/grpc-js leaves escaped what encodeURI does not escape. */
function grpcTrailers(error: ConnectError): Headers {
  const trailers = setTrailerStatus(new Headers(), error);
  trailers.set('grpc-message', encodeURI(error.rawMessage));
  return trailers;
}

/**
 * Rejects a request to an RPC whose method or content type no protocol has. In plain text, as no form of an error is
 * known that its client reads; clients go by the HTTP status.
 */
function refuseInText(record: RequestRecord, error: ApiError): void {
  record.error = error.code;
  const headers = ['content-type', 'text/plain', 'x-request-id', record.requestId];
  for (const [name, value] of Object.entries(error.headers)) headers.push(name, value);
  const { httpStatus: status } = errorRules(error.code);
  const body = Buffer.from(`${error.message}\n`);
  writeResponse(record.req, record.res, { status, headers, body, etag: undefined });
}

/** Rejects a content type. */
export function refuseFormat(record: RequestRecord): void {
  const message = 'the content type is none of Connect, gRPC or gRPC-Web';
  refuseInText(record, new ApiError(ErrorCode.REQUEST_UNSUPPORTED_MEDIA_TYPE, message));
}

/** Answers OPTIONS with the methods that an RPC allows and rejects the others. */
export function refuseMethod(httpMethods: readonly string[], record: RequestRecord): void {
  const { req, res, requestId } = record;
  record.protocol = protocolOf(req.headers['content-type']);
  const allow = [...httpMethods, 'OPTIONS'].join(', ');
  if (req.method !== 'OPTIONS') {
    const message = `this RPC is called by ${httpMethods.join(' or ')}`;
    refuseInText(record, new ApiError(ErrorCode.REQUEST_METHOD_NOT_ALLOWED, message, {}, { allow }));
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
  record.error = error.code;
  writeRpcResponse(record, errorResponse(record, toConnectError(error, record.requestId)));
}

/** Rejects a call of an unknown method; on gRPC and gRPC-Web with headers only. */
export function refuseUnknownRpc(record: RequestRecord): void {
  const { req, res, requestId } = record;
  const type = req.headers['content-type'];
  record.protocol = protocolOf(type);
  record.error = ErrorCode.ROUTE_NOT_FOUND;
  const error = protocolError('no RPC has this name', Code.Unimplemented, { 'x-request-id': requestId });
  if (record.protocol === 'connect') {
    // Connect's clients take this HTTP status for an unknown method and ignore the body.
    writeRpcResponse(record, { ...errorResponse(record, error), status: 404 });
    return;
  }
  for (const [name, value] of grpcTrailers(error)) res.setHeader(name, value);
  // Strict clients take no other type than the one they sent.
  res.setHeader(
    'content-type',
    findFormat(type) === undefined ? `application/${record.protocol}` : (type ?? ''),
  );
  res.statusCode = 200;
  res.end();
}
