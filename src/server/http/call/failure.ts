import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import type { Call } from '../../core/call.js';
import { ApiError } from '../../core/errors.js';
import type { Logger } from '../../core/logger.js';

/**
 * What the caller is told of anything a call failed with: an ApiError is passed on, a failure of a call whose caller
 * has gone or whose deadline has passed says so, and everything else is logged and becomes `service.internal`.
 */
export function asApiError(log: Logger, error: unknown, call: Call): ApiError {
  if (error instanceof ApiError) return error;
  if (call.signal().aborted) return deadlineExceeded(error);
  log.error({ err: error, request_id: call.requestId, rpc: call.method.name }, 'a call failed');
  return internalError(call.requestId, error);
}

/** The error of a failure that is not the caller's; its cause is for the log only. */
export function internalError(requestId: string, cause: unknown): ApiError {
  const message = `the service failed; please report the request id ${requestId}`;
  return new ApiError(ErrorCode.SERVICE_INTERNAL, message, {}, {}, { cause });
}

/** The error of a call that was not answered in time. */
export function deadlineExceeded(cause?: unknown): ApiError {
  const message = "the request's deadline passed before it was answered";
  return new ApiError(ErrorCode.SERVICE_DEADLINE_EXCEEDED, message, {}, {}, { cause });
}
