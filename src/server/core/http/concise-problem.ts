import { STATUS_CODES } from 'node:http';
import { encode } from 'cborg';
import { errorRules } from '../../../protocol/error-rules.js';
import type { ApiError } from '../errors.js';

/** The media type of concise problem details. */
export const CONCISE_PROBLEM_TYPE = 'application/concise-problem-details+cbor';
const [TITLE, DETAIL] = [-1, -2];
/** The custom entry that has what the error envelope has beside the message. */
const ERROR_ENTRY = 'urn:attestation-service:error';

/** An error as concise problem details (RFC 9290), with code, details and request id in an entry of our own. */
export function conciseProblem(
  { code, message, details }: Pick<ApiError, 'code' | 'message' | 'details'>,
  requestId: string,
): { contentType: string; body: Uint8Array } {
  const { title, httpStatus, code: dotted } = errorRules(code);
  const problem = new Map<number | string, unknown>([
    [TITLE, title || STATUS_CODES[httpStatus]],
    [DETAIL, message],
    [ERROR_ENTRY, { code: dotted, details, request_id: requestId }],
  ]);
  return { contentType: CONCISE_PROBLEM_TYPE, body: encode(problem) };
}
