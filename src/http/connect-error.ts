import { type Code, ConnectError } from '@connectrpc/connect';
import { ErrorDetailSchema } from '../../gen/attestation/v1/errors_pb.js';
import type { Call } from '../call.js';
import { type ApiError, errorRules } from '../errors.js';

/**
 * The error as Connect, gRPC and gRPC-Web carry it: the code's gRPC status, an `ErrorDetail`, and the answer's headers
 * as metadata, since nothing else of the call reaches the wire once it fails.
 */
export function connectError(
  error: ApiError,
  call: Pick<Call, 'requestId' | 'responseHeaders'>,
  grpcCode: Code = errorRules(error.code).grpcCode,
): ConnectError {
  const { code } = errorRules(error.code);
  const metadata = {
    ...Object.fromEntries(call.responseHeaders),
    ...error.headers,
    'x-request-id': call.requestId,
  };
  return new ConnectError(
    error.message,
    grpcCode,
    metadata,
    [{ desc: ErrorDetailSchema, value: { code, details: error.details, requestId: call.requestId } }],
    error,
  );
}
