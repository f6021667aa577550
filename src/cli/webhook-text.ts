import { timestampDate } from '@bufbuild/protobuf/wkt';
import {
  DeliveryStatusSchema,
  EventTypeSchema,
  type Webhook,
  type WebhookDelivery,
  WebhookStatusSchema,
} from '../../gen/attestation/v1/webhooks_pb.js';
import { spellingOf } from '../spelling.js';
import { printable } from './cli.js';
import { formatTable } from './table.js';

/** Subscriptions, a line each. */
export function webhookTable(webhooks: readonly Webhook[]): string {
  return formatTable([
    ['ID', 'STATUS', 'EVENTS', 'ADDRESS'],
    ...webhooks.map((webhook) => [webhook.id, statusOf(webhook), eventsOf(webhook), printable(webhook.url)]),
  ]);
}

/** One subscription, with its secret when the answer has it. */
export function webhookText(webhook: Webhook): string {
  const { secret, disabledReason } = webhook;
  const lines = [`${webhook.id}  ${statusOf(webhook)}  ${printable(webhook.url)}  ${eventsOf(webhook)}`];
  if (disabledReason !== undefined) lines.push(`disabled: ${printable(disabledReason)}`);
  if (secret !== undefined) lines.push(`secret ${printable(secret)}`, 'It is not shown again.');
  return lines.join('\n');
}

/** Deliveries, a line each, with what came of the last attempt. */
export function deliveryTable(deliveries: readonly WebhookDelivery[]): string {
  return formatTable([
    ['ID', 'CREATED', 'STATUS', 'EVENT', 'ATTEMPTS', 'LAST'],
    ...deliveries.map(({ id, createdAt, status, event, attempts }) => {
      const last = attempts.at(-1);
      return [
        id,
        createdAt === undefined ? '' : timestampDate(createdAt).toISOString(),
        spellingOf(DeliveryStatusSchema, status),
        event === undefined ? '' : spellingOf(EventTypeSchema, event.type),
        String(attempts.length),
        printable(last?.error ?? String(last?.statusCode ?? '')),
      ];
    }),
  ]);
}

function statusOf({ status }: Webhook): string {
  return spellingOf(WebhookStatusSchema, status);
}

function eventsOf({ events }: Webhook): string {
  return events.map((event) => spellingOf(EventTypeSchema, event)).join(',');
}
