import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { type ApiKey, ApiKeySchema, ApiKeyStatus } from '../../../gen/attestation/admin/v1/api_keys_pb.js';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { ApiError } from '../core/errors.js';
import type { Sql } from '../database/connect.js';
import { type ApiKeyRow, findApiKey, lockApiKey } from './store/api-keys.js';

/** Reads a key. Throws `api_key.not_found`. */
export async function getApiKey(sql: Sql, id: string): Promise<ApiKeyRow> {
  return assertFound(await findApiKey(sql, id));
}

/** Reads a key and locks it until the transaction ends. Throws `api_key.not_found`. */
export async function getLockedApiKey(tx: Sql, id: string): Promise<ApiKeyRow> {
  return assertFound(await lockApiKey(tx, id));
}

function assertFound(row: ApiKeyRow | undefined): ApiKeyRow {
  if (row === undefined) throw new ApiError(ErrorCode.API_KEY_NOT_FOUND, 'there is no API key with this id');
  return row;
}

/** Reads a key as the API returns it, without its secret. Throws `api_key.not_found`. */
export async function getApiKeyMessage(sql: Sql, id: string, nowMs: number): Promise<ApiKey> {
  return apiKeyMessage(await getApiKey(sql, id), nowMs);
}

/** The status of a key at a time in Unix milliseconds. */
export function apiKeyStatus({ revokedAt, expiresAt }: ApiKeyRow, nowMs: number): ApiKeyStatus {
  if (revokedAt !== null) return ApiKeyStatus.REVOKED;
  return expiresAt !== null && expiresAt.getTime() <= nowMs ? ApiKeyStatus.EXPIRED : ApiKeyStatus.ACTIVE;
}

/** Converts a row to the message of the API, with the secret if given. */
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
    ...(row.createdBy !== null && { createdBy: row.createdBy }),
    ...(secret !== undefined && { secret }),
  });
}
