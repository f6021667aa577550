import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  DeliveryStatus,
  type Webhook,
  type WebhookAttempt,
  WebhookAttemptSchema,
  type WebhookDelivery,
  WebhookDeliverySchema,
  WebhookSchema,
} from '../../../../gen/attestation/v1/webhooks_pb.js';
import { eventOf } from '../delivery/event.js';
import { shownHeaders } from '../delivery/sign.js';
import type { AttemptRow } from '../store/webhook-attempts.js';
import type { DeliveryRow } from '../store/webhook-deliveries.js';
import type { WebhookRow } from '../store/webhooks.js';

/** Converts a row to the message of the API. Only responses that create a secret include it. */
export function webhookMessage(row: WebhookRow, nowMs: number, secret?: string): Webhook {
  const until = row.previousSecretUntil;
  return create(WebhookSchema, {
    id: row.id,
    url: row.url,
    events: row.events,
    environment: row.environment,
    status: row.status,
    ...(row.disabledReason === null ? {} : { disabledReason: row.disabledReason }),
    ...(secret === undefined ? {} : { secret }),
    createdAt: timestampFromDate(row.createdAt),
    ...(until === null || until.getTime() <= nowMs ? {} : { previousSecretUntil: timestampFromDate(until) }),
    ...(row.failingSince === null ? {} : { failingSince: timestampFromDate(row.failingSince) }),
  });
}

/** Converts a delivery and its attempts, in order, to the message of the API; `hasHeaders`: with those of each request. */
export function deliveryMessage(
  row: DeliveryRow,
  attempts: readonly AttemptRow[],
  baseUrl: string,
  { hasHeaders = false } = {},
): WebhookDelivery {
  const event = eventOf(row, baseUrl);
  return create(WebhookDeliverySchema, {
    id: row.id,
    webhookId: row.webhookId,
    status: row.status,
    event,
    createdAt: timestampFromDate(row.createdAt),
    ...(row.status === DeliveryStatus.PENDING ? { nextAttemptAt: timestampFromDate(row.nextAttemptAt) } : {}),
    ...(row.deliveredAt === null ? {} : { deliveredAt: timestampFromDate(row.deliveredAt) }),
    attempts: attempts.map((attempt) => attemptMessage(attempt, hasHeaders ? event.id : undefined)),
  });
}

/** `eventId`: undefined leaves the headers out. */
function attemptMessage(row: AttemptRow, eventId: string | undefined): WebhookAttempt {
  return create(WebhookAttemptSchema, {
    number: row.number,
    at: timestampFromDate(row.at),
    durationMs: row.durationMs,
    ...(row.statusCode === null ? {} : { statusCode: row.statusCode }),
    ...(row.error === null ? {} : { error: row.error }),
    ...(row.answer === null ? {} : { answer: row.answer }),
    ...(row.url === null ? {} : { url: row.url }),
    requestHeaders: eventId === undefined ? [] : shownHeaders({ id: eventId, atMs: row.at.getTime() }),
  });
}
