import { type Code, ConnectError } from '@connectrpc/connect';
import { errorRules } from '../../../protocol/error-rules.js';
import type { Call } from '../../core/call.js';
import type { ApiError } from '../../core/errors.js';
import { boundMessage, errorDetails } from './error-details.js';

/**
 * The error as Connect, gRPC and gRPC-Web carry it: the code's gRPC status, its details, and the answer's headers
 * as metadata, since nothing else of the call reaches the wire once it fails.
 */
export function connectError(
  error: ApiError,
  call: Pick<Call, 'requestId' | 'responseHeaders'>,
  grpcCode: Code = errorRules(error.code).grpcCode,
): ConnectError {
  const metadata = {
    ...Object.fromEntries(call.responseHeaders),
    ...error.headers,
    'x-request-id': call.requestId,
  };
  const details = errorDetails(error, call.requestId);
  return new ConnectError(boundMessage(error.message), grpcCode, metadata, details, error);
}
