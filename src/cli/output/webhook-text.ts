import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import {
  DeliveryStatusSchema,
  EventTypeSchema,
  type Webhook,
  type WebhookDelivery,
  WebhookStatusSchema,
} from '../../../gen/attestation/v1/webhooks_pb.js';
import { enumName } from '../../protocol/enum-names.js';
import { printable } from '../../protocol/printable.js';
import { formatTable } from './table.js';

/** Subscriptions as a table, one per line. */
export function webhookTable(webhooks: readonly Webhook[]): string {
  return formatTable([
    ['ID', 'STATUS', 'EVENTS', 'ADDRESS'],
    ...webhooks.map((webhook) => [webhook.id, statusOf(webhook), eventsOf(webhook), printable(webhook.url)]),
  ]);
}

/** One subscription, with its secret if the response has it. */
export function webhookText(webhook: Webhook): string {
  const { secret, disabledReason, failingSince, previousSecretUntil } = webhook;
  const lines = [`${webhook.id}  ${statusOf(webhook)}  ${printable(webhook.url)}  ${eventsOf(webhook)}`];
  if (disabledReason !== undefined) lines.push(`disabled: ${printable(disabledReason)}`);
  if (failingSince !== undefined) lines.push(`every attempt has failed since ${timeOf(failingSince)}`);
  if (previousSecretUntil !== undefined)
    lines.push(`the previous secret keeps signing until ${timeOf(previousSecretUntil)}`);
  if (secret !== undefined) lines.push(`secret ${printable(secret)}`, 'The secret is shown only once.');
  return lines.join('\n');
}

/** Deliveries as a table, one per line, with the result of the last attempt. */
export function deliveryTable(deliveries: readonly WebhookDelivery[]): string {
  return formatTable([
    ['ID', 'CREATED', 'STATUS', 'EVENT', 'ATTEMPTS', 'LAST'],
    ...deliveries.map(({ id, createdAt, status, event, attempts }) => {
      const last = attempts.at(-1);
      return [
        id,
        timeOf(createdAt),
        enumName(DeliveryStatusSchema, status),
        event === undefined ? '' : enumName(EventTypeSchema, event.type),
        String(attempts.length),
        printable(last?.error ?? String(last?.statusCode ?? '')),
      ];
    }),
  ]);
}

/** One delivery: its event, then each attempt with its response. */
export function deliveryText({ id, status, event, nextAttemptAt, attempts }: WebhookDelivery): string {
  const type = event === undefined ? '' : enumName(EventTypeSchema, event.type);
  const lines = [`${id}  ${enumName(DeliveryStatusSchema, status)}  ${type}  ${event?.id ?? ''}`];
  if (event?.data !== undefined) lines.push(printable(JSON.stringify(event.data)));
  for (const { number, at, durationMs, statusCode, error, answer, url, requestHeaders } of attempts) {
    lines.push(
      `attempt ${number}  ${timeOf(at)}  ${durationMs} ms  ${printable(error ?? String(statusCode ?? ''))}`,
    );
    if (url !== undefined) lines.push(`  POST ${printable(url)}`);
    for (const { name, value } of requestHeaders) lines.push(`  ${printable(`${name}: ${value}`)}`);
    if (answer) lines.push(`  response: ${printable(answer)}`);
  }
  if (nextAttemptAt !== undefined) lines.push(`next attempt  ${timeOf(nextAttemptAt)}`);
  return lines.join('\n');
}

function timeOf(at: Timestamp | undefined): string {
  return at === undefined ? '' : timestampDate(at).toISOString();
}

function statusOf({ status }: Webhook): string {
  return enumName(WebhookStatusSchema, status);
}

function eventsOf({ events }: Webhook): string {
  return events.map((event) => enumName(EventTypeSchema, event)).join(',');
}
