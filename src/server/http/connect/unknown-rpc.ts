import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { ApiError } from '../../core/errors.js';
import type { RequestRecord } from '../socket/requests.js';
import { connectError } from './connect-error.js';
import { setGrpcMessage } from './grpc-message.js';

const GRPC = /^application\/grpc(-web)?(?=$|[+;])/;

/** Whether a request expects an answer of gRPC or gRPC-Web. */
export function wantsGrpc({ req }: RequestRecord): boolean {
  return GRPC.test(req.headers['content-type'] ?? '');
}

/** Answers a gRPC or gRPC-Web call of a method that does not exist, by headers alone. */
export function refuseUnknownRpc(record: RequestRecord): void {
  const { req, res, requestId } = record;
  const [contentType = ''] = GRPC.exec(req.headers['content-type'] ?? '') ?? [];
  record.surface = contentType === 'application/grpc' ? 'grpc' : 'grpc-web';
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
