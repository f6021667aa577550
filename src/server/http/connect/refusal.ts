import { Code, type ConnectError } from '@connectrpc/connect';
import { codeToHttpStatus, errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import { trailerSerialize } from '@connectrpc/connect/protocol-grpc-web';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import type { Call } from '../../core/call.js';
import { ApiError } from '../../core/errors.js';
import type { RequestRecord } from '../socket/requests.js';
import { connectError, setGrpcMessage } from './connect-error.js';
import { envelope } from './envelope.js';
import type { RpcResponse } from './write-rpc.js';

const GRPC = /^application\/grpc(-web)?(?=$|[+;])/;
const TRAILER_FLAG = 0x80;

/** The response that rejects a call, in the form of its protocol. Records the error in the request's record. */
export function refusalResponse(
  record: RequestRecord,
  call: Pick<Call, 'requestId' | 'responseHeaders'>,
  error: ApiError,
): RpcResponse {
  record.error = error.code;
  // gRPC wants `unimplemented` for an encoding it does not know, which is not the catalogue's code for it.
  const isUnknownEncoding = error.code === ErrorCode.REQUEST_UNSUPPORTED_MEDIA_TYPE;
  const status = connectError(error, call, isUnknownEncoding ? Code.Unimplemented : undefined);
  return statusResponse(record, status);
}

/** The error in the form of the request's protocol. */
function statusResponse({ protocol, req }: RequestRecord, error: ConnectError): RpcResponse {
  if (protocol === 'connect') {
    const headers = [...error.metadata, ['content-type', 'application/json']].flat();
    return { status: codeToHttpStatus(error.code), headers, body: errorToJsonBytes(error, undefined) };
  }
  const trailer = setGrpcMessage(setTrailerStatus(new Headers(), error));
  const headers = ['content-type', req.headers['content-type'] ?? ''];
  if (protocol === 'grpc') return { status: 200, headers, trailers: Object.fromEntries(trailer) };
  return { status: 200, headers, body: envelope(TRAILER_FLAG, trailerSerialize(trailer)) };
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
