import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { type Call, getPrincipal } from '../../core/call.js';
import { ApiError } from '../../core/errors.js';
import type { Sql } from '../../database/connect.js';
import { findWebhook, type WebhookRow } from '../store/webhooks.js';

/** Reads a subscription of the caller. Throws `webhook.not_found` if it is unknown or another project's. */
export async function getWebhook(
  sql: Sql,
  id: string,
  call: Call,
  options: { isLocked?: boolean } = {},
): Promise<WebhookRow> {
  const row = await findWebhook(sql, getPrincipal(call), id, options);
  assertFound(row !== undefined);
  return row;
}

/** Throws `webhook.not_found` unless `isFound`. */
export function assertFound(isFound: boolean): asserts isFound {
  if (isFound) return;
  throw new ApiError(
    ErrorCode.WEBHOOK_NOT_FOUND,
    "the project has no webhook subscription with this id in the API key's environment",
  );
}
