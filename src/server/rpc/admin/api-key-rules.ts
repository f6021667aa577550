import type { Timestamp } from '@bufbuild/protobuf/wkt';
import {
  type ApiKeyLimits,
  ApiKeyStatus,
  ApiKeyStatusSchema,
} from '../../../../gen/attestation/admin/v1/api_keys_pb.js';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import { ApiError } from '../../core/errors.js';
import { type Principal, UNIVERSAL_SCOPE } from '../../core/principal.js';
import { invalidRequest } from '../../json/problems.js';
import { dateOfTimestamp } from '../../json/timestamp.js';
import type { ApiKeyRow, ApiKeyLimits as StoredLimits } from '../../store/projects/api-keys.js';
import { apiKeyStatus } from './api-key-message.js';

/** The scopes to store; throws `request.invalid` for one that does not exist. */
export function checkScopes(wanted: readonly string[], known: readonly string[]): string[] {
  const isKnown = (scope: string) => scope === UNIVERSAL_SCOPE || known.includes(scope);
  const problems = wanted.flatMap((scope, index) =>
    isKnown(scope)
      ? []
      : [{ path: `/scopes/${index}`, message: `is no scope; there are ${known.join(', ')}` }],
  );
  if (problems.length > 0) throw invalidRequest(problems);
  return wanted.filter((scope) => scope !== UNIVERSAL_SCOPE);
}

/** An environment from a checked request or a row. */
export function toEnvironment(number: number): Principal['environment'] {
  if (number === Environment.LIVE || number === Environment.TEST) return number;
  throw new Error(`there is no environment ${number}`);
}

/** The expiry to store; throws `request.invalid` when it is not in the future. */
export function checkExpiry(expiresAt: Timestamp, nowMs: number): Date {
  const date = dateOfTimestamp(expiresAt);
  if (date.getTime() <= nowMs) {
    throw invalidRequest([{ path: '/expires_at', message: 'must be in the future' }]);
  }
  return date;
}

/** The limits to store: those given, and for the others what they are so far. */
export function mergeLimits(given: ApiKeyLimits | undefined, sofar: StoredLimits): StoredLimits {
  return {
    submissionsPerSecond: Number(given?.submissionsPerSecond ?? sofar.submissionsPerSecond),
    submissionsPerHour: Number(given?.submissionsPerHour ?? sofar.submissionsPerHour),
    submissionsPerDay: Number(given?.submissionsPerDay ?? sofar.submissionsPerDay),
    readsPerSecond: Number(given?.readsPerSecond ?? sofar.readsPerSecond),
  };
}

/** Throws `api_key.not_active` when the key is revoked. */
export function assertNotRevoked(row: ApiKeyRow, nowMs: number): void {
  if (row.revokedAt !== null) throw notActive(row, nowMs, 'the API key is revoked for good');
}

/** Throws `api_key.not_active` unless the key works and has no successor. */
export function assertRotatable(row: ApiKeyRow, nowMs: number): void {
  assertNotRevoked(row, nowMs);
  if (apiKeyStatus(row, nowMs) !== ApiKeyStatus.ACTIVE) {
    throw notActive(row, nowMs, 'the API key has expired; make a new one');
  }
  if (row.successorId !== null) {
    throw notActive(row, nowMs, `the API key was rotated already; its successor is ${row.successorId}`);
  }
}

function notActive(row: ApiKeyRow, nowMs: number, message: string): ApiError {
  const status = enumName(ApiKeyStatusSchema, apiKeyStatus(row, nowMs));
  return new ApiError(ErrorCode.API_KEY_NOT_ACTIVE, message, { status });
}
