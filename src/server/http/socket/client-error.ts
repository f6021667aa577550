import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { errorRules } from '../../../protocol/error-rules.js';
import { ApiError } from '../../core/errors.js';
import { invalidRequest } from '../../json/problems.js';
import { errorEnvelope } from './write-response.js';

const MALFORMED = invalidRequest([{ path: '', message: 'is not well-formed HTTP' }]);

/** Errors by the code of Node's error. */
const REFUSALS: Readonly<Record<string, ApiError>> = {
  HPE_HEADER_OVERFLOW: new ApiError(ErrorCode.REQUEST_HEADERS_TOO_LARGE, 'the request headers are too large'),
  ERR_HTTP_REQUEST_TIMEOUT: new ApiError(ErrorCode.REQUEST_TIMEOUT, 'the request was not received in time'),
};

/**
 * Responds to malformed HTTP/1.1 with our error envelope and closes the connection. If a response is being sent
 * on it, only closes it: a second response would corrupt the first.
 */
export function refuseMalformed(
  error: Error & { code?: string },
  socket: Socket,
  requestId: string,
  answering: boolean,
): void {
  if (error.code === 'ECONNRESET' || !socket.writable || answering) {
    socket.destroy();
    return;
  }
  const { code, message, details } = REFUSALS[error.code ?? ''] ?? MALFORMED;
  const status = errorRules(code).httpStatus;
  const body = errorEnvelope(code, message, requestId, details);
  socket.end(
    [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      'content-type: application/json',
      `content-length: ${Buffer.byteLength(body)}`,
      `x-request-id: ${requestId}`,
      'connection: close',
      '',
      body,
    ].join('\r\n'),
    () => socket.destroy(),
  );
}
