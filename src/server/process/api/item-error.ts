import { ApiError, internalError } from '../../core/errors.js';
import type { Logger } from '../../core/logger.js';

/** The error of an item of a batch, made of any thrown value; the cause of an internal error is logged. */
export function itemError(log: Logger, error: unknown, requestId: string): ApiError {
  if (error instanceof ApiError) return error;
  log.error({ err: error, request_id: requestId }, 'an item of a batch failed');
  return internalError(requestId, error);
}
