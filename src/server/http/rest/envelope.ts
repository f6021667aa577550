import type { JsonObject } from '@bufbuild/protobuf';
import type { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { errorRules } from '../../../protocol/error-rules.js';
import type { ApiError } from '../../core/errors.js';
import type { NodeResponse, RequestRecord } from '../socket/requests.js';

/** The REST error envelope as JSON text, for answers that are given before or beside the REST surface. */
export function errorEnvelope(
  code: ErrorCode,
  message: string,
  requestId: string,
  details: JsonObject = {},
): string {
  return JSON.stringify({
    error: { code: errorRules(code).code, message, details, request_id: requestId },
  });
}

/** Answers a request with an error and notes it in the record; one whose answer has begun is cut off instead. */
export function sendError(record: RequestRecord, error: ApiError): void {
  record.error = error.code;
  if (record.res.headersSent) return void record.res.destroy();
  const body = errorEnvelope(error.code, error.message, record.requestId, error.details);
  // Both kinds of response have these methods, but TypeScript finds no common signature.
  const res = record.res as Extract<NodeResponse, { shouldKeepAlive: boolean }>;
  res.writeHead(errorRules(error.code).httpStatus, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'x-request-id': record.requestId,
    ...error.headers,
  });
  res.end(body);
}
