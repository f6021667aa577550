import type { JsonObject } from '@bufbuild/protobuf';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';

/** An error that the caller sees. Its code determines the status in every protocol. */
export class ApiError extends Error {
  override readonly name = 'ApiError';

  /**
   * @param message a sentence for people; callers see it, so it contains no secret and no SQL
   * @param details as the code's summary in errors.proto says
   * @param headers of the response, by lower-case name, for example `retry-after`
   */
  constructor(
    readonly code: ErrorCode,
    message: string,
    readonly details: JsonObject = {},
    readonly headers: Readonly<Record<string, string>> = {},
    options?: ErrorOptions,
  ) {
    // The stack is never logged, and making one takes a fifth of the CPU of a rejected request.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(message, options);
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** Returns a `service.unavailable` error with a `Retry-After` header. */
export function unavailable(message: string, retryAfterSeconds: number, cause?: unknown): ApiError {
  return new ApiError(
    ErrorCode.SERVICE_UNAVAILABLE,
    message,
    {},
    { 'retry-after': String(retryAfterSeconds) },
    { cause },
  );
}

/** Returns an `idempotency.in_progress` error: a request with the same key did not finish while this one waited. */
export function idempotencyInProgress(): ApiError {
  return new ApiError(
    ErrorCode.IDEMPOTENCY_IN_PROGRESS,
    'a request with the same idempotency key is still under way',
    {},
    { 'retry-after': '1' },
  );
}

/** An internal error; its cause is only logged. */
export function internalError(requestId: string, cause: unknown): ApiError {
  const message = `the service failed; please report the request id ${requestId}`;
  return new ApiError(ErrorCode.SERVICE_INTERNAL, message, {}, {}, { cause });
}

/** The error of a call whose deadline passed. */
export function deadlineExceeded(cause?: unknown): ApiError {
  const message = "the request's deadline passed before it was answered";
  return new ApiError(ErrorCode.SERVICE_DEADLINE_EXCEEDED, message, {}, {}, { cause });
}
