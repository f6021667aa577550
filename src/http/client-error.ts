import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { ErrorCode } from '../../gen/attestation/v1/errors_pb.js';
import { errorRules } from '../errors.js';
import { errorEnvelope } from './envelope.js';

type Refusal = { code: ErrorCode; message: string };

const MALFORMED: Refusal = {
  code: ErrorCode.REQUEST_INVALID,
  message: 'the request is not well-formed HTTP',
};

/** By the code of Node's error. */
const REFUSALS: Readonly<Record<string, Refusal>> = {
  HPE_HEADER_OVERFLOW: {
    code: ErrorCode.REQUEST_HEADERS_TOO_LARGE,
    message: 'the request headers are too large',
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    code: ErrorCode.REQUEST_TIMEOUT,
    message: 'the request was not received in time',
  },
};

/**
 * Answers what Node could not parse as HTTP/1.1 with our envelope, and closes the connection. When an answer is under
 * way on it, only closes it: a second one would corrupt the first.
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
  const { code, message } = REFUSALS[error.code ?? ''] ?? MALFORMED;
  const status = errorRules(code).httpStatus;
  const body = errorEnvelope(code, message, requestId);
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
