import type { ApiKey } from '../../../../gen/attestation/admin/v1/api_keys_pb.js';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { ApiError } from '../../core/errors.js';
import type { Sql } from '../../store/database/connect.js';
import { type ApiKeyRow, findApiKey, lockApiKey } from '../../store/projects/api-keys.js';
import { apiKeyMessage } from './api-key-message.js';

/** The key; throws `api_key.not_found`. */
export async function getApiKey(sql: Sql, id: string): Promise<ApiKeyRow> {
  return assertFound(await findApiKey(sql, id));
}

/** The key as the admin API shows it, without its secret; throws `api_key.not_found`. */
export async function showApiKey(sql: Sql, id: string, nowMs: number): Promise<ApiKey> {
  return apiKeyMessage(await getApiKey(sql, id), nowMs);
}

/** The key, kept from changing until the transaction ends; throws `api_key.not_found`. */
export async function getLockedApiKey(tx: Sql, id: string): Promise<ApiKeyRow> {
  return assertFound(await lockApiKey(tx, id));
}

function assertFound(row: ApiKeyRow | undefined): ApiKeyRow {
  if (row === undefined) throw new ApiError(ErrorCode.API_KEY_NOT_FOUND, 'there is no API key with this id');
  return row;
}
