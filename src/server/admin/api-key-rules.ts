import type { Timestamp } from '@bufbuild/protobuf/wkt';
import {
  type ApiKeyLimits,
  ApiKeyStatus,
  ApiKeyStatusSchema,
} from '../../../gen/attestation/admin/v1/api_keys_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { enumName } from '../../protocol/enum-names.js';
import { ApiError } from '../core/errors.js';
import { type Principal, UNIVERSAL_SCOPE } from '../core/principal.js';
import { invalidRequest } from '../json/problems.js';
import { dateOfTimestamp } from '../json/well-known-types.js';
import { apiKeyStatus } from './get-api-key.js';
import type { ApiKeyRow, ApiKeyLimits as StoredLimits } from './store/api-keys.js';

/** Returns the scopes to store. Throws `request.invalid` if a scope does not exist. */
export function validateScopes(wanted: readonly string[], known: readonly string[]): string[] {
  const isKnown = (scope: string) => scope === UNIVERSAL_SCOPE || known.includes(scope);
  const problems = wanted.flatMap((scope, index) =>
    isKnown(scope)
      ? []
      : [{ path: `/scopes/${index}`, message: `is no scope; there are ${known.join(', ')}` }],
  );
  if (problems.length > 0) throw invalidRequest(problems);
  return wanted.filter((scope) => scope !== UNIVERSAL_SCOPE);
}

/** Narrows the environment of a validated request or a row. */
export function toEnvironment(number: number): Principal['environment'] {
  if (number === Environment.LIVE || number === Environment.TEST) return number;
  throw new Error(`there is no environment ${number}`);
}

/** Returns the expiry to store. Throws `request.invalid` if it is not in the future. */
export function validateExpiry(expiresAt: Timestamp, nowMs: number): Date {
  const date = dateOfTimestamp(expiresAt);
  if (date.getTime() <= nowMs) {
    throw invalidRequest([{ path: '/expires_at', message: 'must be in the future' }]);
  }
  return date;
}

/** Returns the limits to store: the given ones, and the current ones for the others. */
export function mergeLimits(given: ApiKeyLimits | undefined, current: StoredLimits): StoredLimits {
  return {
    submissionsPerSecond: Number(given?.submissionsPerSecond ?? current.submissionsPerSecond),
    submissionsPerHour: Number(given?.submissionsPerHour ?? current.submissionsPerHour),
    submissionsPerDay: Number(given?.submissionsPerDay ?? current.submissionsPerDay),
    readsPerSecond: Number(given?.readsPerSecond ?? current.readsPerSecond),
  };
}

/** Throws `api_key.not_active` if the key is revoked. */
export function assertNotRevoked(row: ApiKeyRow, nowMs: number): void {
  if (row.revokedAt !== null) throw notActive(row, nowMs, 'the API key is revoked for good');
}

/** Throws `api_key.not_active` unless the key is active and has no successor. */
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
