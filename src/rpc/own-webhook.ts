import type { Message } from '@bufbuild/protobuf';
import { ErrorCode } from '../../gen/attestation/v1/errors_pb.js';
import { type Call, getPrincipal } from '../call.js';
import { ApiError } from '../errors.js';
import type { Sql } from '../store/connect.js';
import { findWebhook, type WebhookRow } from '../store/webhooks.js';
import { type Idempotency, idempotently } from './idempotent.js';

/** The caller's own subscription; another project's is not found, as one that never was. */
export async function getWebhook(sql: Sql, id: string, call: Call): Promise<WebhookRow> {
  const row = await findWebhook(sql, getPrincipal(call), id);
  assertFound(row !== undefined);
  return row;
}

/** Throws `webhook.not_found` unless it was found. */
export function assertFound(isFound: boolean): asserts isFound {
  if (isFound) return;
  throw new ApiError(ErrorCode.WEBHOOK_NOT_FOUND, 'the project has no webhook subscription with this id');
}

/** A change of a resource, and how it is shown, in the change's transaction or when the call is replayed. */
export type Change<M extends Message> = {
  make: (tx: Sql) => Promise<string>;
  show: (sql: Sql, id: string) => Promise<M>;
};

/** Carries out a call's change, once per idempotency key, and shows the resource as it then stands. */
export function change<M extends Message>(
  idempotency: Idempotency,
  call: Call,
  request: Message,
  { make, show }: Change<M>,
): Promise<M> {
  return idempotently(idempotency, call, request, {
    effect: async (tx) => {
      const resourceId = await make(tx);
      return { resourceId, response: await show(tx, resourceId) };
    },
    replay: (id) => show(idempotency.pool, id),
  });
}
