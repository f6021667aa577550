import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { type ApiKey, ApiKeySchema, ApiKeyStatus } from '../../../../gen/attestation/admin/v1/api_keys_pb.js';
import type { ApiKeyRow } from '../../store/projects/api-keys.js';

/** Whether a key works at a time in Unix milliseconds. */
export function apiKeyStatus({ revokedAt, expiresAt }: ApiKeyRow, nowMs: number): ApiKeyStatus {
  if (revokedAt !== null) return ApiKeyStatus.REVOKED;
  return expiresAt !== null && expiresAt.getTime() <= nowMs ? ApiKeyStatus.EXPIRED : ApiKeyStatus.ACTIVE;
}

/** A key as the admin API shows it, with its secret only when that is given. */
export function apiKeyMessage(row: ApiKeyRow, nowMs: number, secret?: string): ApiKey {
  return create(ApiKeySchema, {
    id: row.id,
    projectId: row.projectId,
    environment: row.environment,
    name: row.name,
    prefix: row.prefix,
    last4: row.last4,
    scopes: row.scopes,
    limits: {
      submissionsPerSecond: BigInt(row.submissionsPerSecond),
      submissionsPerHour: BigInt(row.submissionsPerHour),
      submissionsPerDay: BigInt(row.submissionsPerDay),
      readsPerSecond: BigInt(row.readsPerSecond),
    },
    status: apiKeyStatus(row, nowMs),
    createdAt: timestampFromDate(row.createdAt),
    ...(row.expiresAt !== null && { expiresAt: timestampFromDate(row.expiresAt) }),
    ...(row.revokedAt !== null && { revokedAt: timestampFromDate(row.revokedAt) }),
    ...(row.lastUsedAt !== null && { lastUsedAt: timestampFromDate(row.lastUsedAt) }),
    ...(row.successorId !== null && { successorId: row.successorId }),
    ...(secret !== undefined && { secret }),
  });
}
