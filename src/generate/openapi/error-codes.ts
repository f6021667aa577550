import type { DescMethod } from '@bufbuild/protobuf';
import { Access, Bucket, type MethodRules } from '../../../gen/attestation/options/v1/options_pb.js';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { errorRules, findErrorCode } from '../../protocol/error-rules.js';
import { UNIVERSAL_SCOPE } from '../../server/core/principal.js';

/** The parts of an operation that determine its possible errors. */
type Refusable = {
  method: DescMethod;
  rules: MethodRules;
  httpMethod: string;
  bodyKind: 'json' | 'raw' | 'none';
};

/**
 * All errors of an operation, in the order of the checks: those of its rules and the form of its request, those of its
 * handler, those of the service. Throws for a code that the catalogue lacks.
 */
export function errorCodes({ method, rules, httpMethod, bodyKind }: Refusable): ErrorCode[] {
  const codes = new Set([
    ...credentialCodes(rules),
    ...(rules.bucket === Bucket.UNSPECIFIED ? [] : [ErrorCode.RATE_LIMIT_EXCEEDED]),
    ...(bodyKind === 'none' ? [] : [ErrorCode.REQUEST_TOO_LARGE, ErrorCode.REQUEST_UNSUPPORTED_MEDIA_TYPE]),
    ...(bodyKind === 'json' ? [ErrorCode.REQUEST_MALFORMED_JSON] : []),
    ErrorCode.REQUEST_INVALID,
    ...(rules.idempotentByKey
      ? [
          ErrorCode.IDEMPOTENCY_KEY_INVALID,
          ErrorCode.IDEMPOTENCY_IN_PROGRESS,
          ErrorCode.IDEMPOTENCY_KEY_REUSED,
        ]
      : []),
    ...(rules.batchOf === '' ? [] : [ErrorCode.IDEMPOTENCY_KEY_INVALID]),
    ...(rules.etag && httpMethod === 'GET' ? [ErrorCode.REQUEST_PRECONDITION_FAILED] : []),
    ...rules.errors.map((code) => getErrorCode(method, code)),
    ErrorCode.SERVICE_INTERNAL,
    ErrorCode.SERVICE_UNAVAILABLE,
    ErrorCode.SERVICE_DEADLINE_EXCEEDED,
  ]);
  return [...codes];
}

/** Codes by HTTP status, lowest first. */
export function byStatus(codes: readonly ErrorCode[]): Map<number, ErrorCode[]> {
  const groups = new Map<number, ErrorCode[]>();
  for (const code of codes) {
    const { httpStatus } = errorRules(code);
    groups.set(httpStatus, [...(groups.get(httpStatus) ?? []), code]);
  }
  return new Map([...groups].sort(([a], [b]) => a - b));
}

function credentialCodes({ access, scope }: MethodRules): ErrorCode[] {
  if (access === Access.PUBLIC) return [];
  const unknown = [ErrorCode.AUTH_MISSING_CREDENTIALS, ErrorCode.AUTH_INVALID_KEY];
  return scope === '' || scope === UNIVERSAL_SCOPE
    ? unknown
    : [...unknown, ErrorCode.AUTH_INSUFFICIENT_SCOPE];
}

function getErrorCode({ parent, name }: DescMethod, code: string): ErrorCode {
  const known = findErrorCode(code);
  if (known === undefined) throw new Error(`${parent.typeName}.${name}: no error has the code ${code}`);
  return known;
}
