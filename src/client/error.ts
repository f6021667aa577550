import type { JsonObject } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { ErrorCode, ErrorDetailSchema, type Error as ItemError } from '../../gen/attestation/v1/errors_pb.js';
import { findErrorCode } from '../protocol/error-rules.js';
import { firstError } from '../protocol/first-error.js';

/**
 * A failed call. `code` is the service's dotted code, or one of the library's own: `connection.failed` (no response),
 * `connection.timeout`, `connection.unexpected_answer` (a response that is not from the service), and `wait.timeout`,
 * `wait.partial`, `wait.failed` of `waitUntilWitnessed`.
 */
export class AttestationError extends Error {
  override readonly name = 'AttestationError';
  readonly code: string;
  /** The same code as an enum; `UNSPECIFIED` for the library's own codes and those of a newer service. */
  readonly errorCode: ErrorCode;
  /** Details of the error, documented with its code. */
  readonly details: JsonObject;
  /** Request id to give to the service's operator; undefined if the request did not reach the service. */
  readonly requestId: string | undefined;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  /** The service's `Retry-After` in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(fields: AttestationErrorFields, options?: ErrorOptions) {
    super(fields.message, options);
    this.code = fields.code;
    this.errorCode = findErrorCode(fields.code) ?? ErrorCode.UNSPECIFIED;
    this.details = fields.details ?? {};
    this.requestId = fields.requestId;
    this.retryable = fields.retryable ?? false;
    this.retryAfterMs = fields.retryAfterMs;
  }
}

/** Fields of an AttestationError. */
type AttestationErrorFields = {
  code: string;
  message: string;
  details?: JsonObject | undefined;
  requestId?: string | undefined;
  retryable?: boolean;
  retryAfterMs?: number | undefined;
};

/** Connect codes of transient failures. They decide for dotted codes that this library does not know, too. */
const RETRYABLE: ReadonlySet<Code> = new Set([Code.Unavailable, Code.DeadlineExceeded, Code.Aborted]);

/** Converts an error of a transport. `now`, in milliseconds since 1970, is for dates in `Retry-After`. */
export function toAttestationError(thrown: unknown, now: number): AttestationError {
  const error = ConnectError.from(thrown);
  const requestId = error.metadata.get('x-request-id') ?? undefined;
  const retryAfterMs = parseRetryAfterMs(error.metadata.get('retry-after'), now);
  const [detail] = error.findDetails(ErrorDetailSchema);
  if (detail === undefined) {
    return new AttestationError({ ...describeConnection(error), requestId, retryAfterMs }, { cause: thrown });
  }
  const { code, details } = detail;
  return new AttestationError(
    {
      code,
      message: error.rawMessage,
      details,
      requestId: detail.requestId || requestId,
      retryable: RETRYABLE.has(error.code) || findErrorCode(code) === ErrorCode.RATE_LIMIT_EXCEEDED,
      retryAfterMs,
    },
    { cause: thrown },
  );
}

/** The error of an item of a batch. `retryAfter`: after how many seconds to try again, there if that may help. */
export function itemError(error: ItemError | undefined, retryAfter: number | undefined): AttestationError {
  const { code = 'connection.unexpected_answer', message = 'an item has no result' } = error ?? {};
  return new AttestationError({
    code,
    message,
    details: error?.details,
    requestId: error?.requestId || undefined,
    retryable: retryAfter !== undefined,
    retryAfterMs: retryAfter === undefined ? undefined : retryAfter * 1000,
  });
}

/** An error without our detail comes from the network, a proxy or the local timeout, not from the service. */
function describeConnection(error: ConnectError): AttestationErrorFields {
  const { code, cause, rawMessage: message } = error;
  if (code === Code.DeadlineExceeded) {
    return { code: 'connection.timeout', message: 'no answer in time', retryable: true };
  }
  if (code === Code.Unavailable) return { code: 'service.unavailable', message, retryable: true };
  // fetch reports every failure of the network as a TypeError.
  if (cause instanceof TypeError) {
    const hint = certificateHint(cause);
    const message = failureReason(cause) + (hint === undefined ? '' : `: ${hint}`);
    return { code: 'connection.failed', message, retryable: hint === undefined };
  }
  return { code: 'connection.unexpected_answer', message: `the answer is not the service's: ${message}` };
}

/** Matches undici's message when a proxy makes no tunnel. */
const REFUSED_BY_PROXY = /^Proxy response \((\d+)\)/;

/** Why fetch failed: what the network or TLS reported. */
export function failureReason(error: Error): string {
  const { message } = originOf(error);
  if (message === '') return error.message;
  const [, status] = REFUSED_BY_PROXY.exec(message) ?? [];
  return status === undefined ? message : `the proxy that HTTPS_PROXY names answered ${status}`;
}

/** The error behind fetch's own; undici wraps a proxy's answer once more. */
function originOf(error: Error): Error {
  const { cause } = error;
  if (!(cause instanceof Error)) return error;
  const first = firstError(cause);
  const inner = first === cause ? cause.cause : first;
  return inner instanceof Error ? inner : cause;
}

/** Codes of Node for a certificate by an authority that it does not trust. */
const UNTRUSTED = /^(?:SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_|CERT_UNTRUSTED)/;

/** Advises on a failure of the server's certificate. Returns undefined for other failures of fetch. */
export function certificateHint(error: Error): string | undefined {
  const { code = '' } = originOf(error) as NodeJS.ErrnoException;
  if (UNTRUSTED.test(code)) {
    return "set ATTEST_CA_FILE to a PEM file with the certificate of the authority that signed the server's";
  }
  if (code === 'CERT_HAS_EXPIRED') return 'its operator has to renew it, or this clock is wrong';
  return code === 'ERR_TLS_CERT_ALTNAME_INVALID'
    ? 'the service is called by a name of its certificate'
    : undefined;
}

function parseRetryAfterMs(text: string | null, now: number): number | undefined {
  if (text === null) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}
