import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  type DeliveryStatus,
  DeliveryStatusSchema,
  type Webhook,
  WebhookDeliverySchema,
  WebhookStatus,
} from '../../../../gen/attestation/v1/webhooks_pb.js';
import type { Client } from '../../../client/client.js';
import { enumNames, findEnumNumber } from '../../../protocol/enum-names.js';
import { type Cli, print, UsageError } from '../../cli.js';
import { printJson, printJsonList } from '../../flags/admin-flags.js';
import { parseCount } from '../../flags/flag-values.js';
import { openClient } from '../../flags/open-client.js';
import {
  type AddSubcommand,
  printWebhook,
  WEBHOOK_ID,
  type WebhookFlags,
} from '../../flags/webhook-flags.js';
import { deliveryTable, deliveryText } from '../../output/webhook-text.js';

type ListFlags = WebhookFlags & { status?: string; submission?: string; limit: string };

const DELIVERY_ID = ['<delivery>', 'delivery ID, dlv_...'] as const;
const PAGE = 200;
const MAX_LISTED = 100_000;

/** `attest webhooks test`, `deliveries`, `delivery` and `redeliver`. */
export function addDeliveries(command: AddSubcommand, cli: Cli): void {
  command('test')
    .description('send a test event to a subscription')
    .argument(...WEBHOOK_ID)
    .action(async (id: string, flags: WebhookFlags) => {
      const delivery = await openClient(cli, flags).webhooks.test({ id });
      if (flags.json) printJson(cli, WebhookDeliverySchema, delivery);
      else print(cli, `${delivery.id}  queued`);
    });
  command('deliveries')
    .description('list deliveries of a subscription, newest first')
    .argument(...WEBHOOK_ID)
    .option(
      '--status <status>',
      `only deliveries with this status: ${enumNames(DeliveryStatusSchema).join(', ')}`,
    )
    .option('--submission <id>', 'only deliveries of events of this submission')
    .option('--limit <count>', 'maximum number of deliveries', '50')
    .action(async (id: string, flags: ListFlags) => {
      const limit = parseCount('--limit', flags.limit, MAX_LISTED);
      const status = flags.status === undefined ? 0 : parseStatus(flags.status);
      const request = { id, limit: Math.min(limit, PAGE), status, submissionId: flags.submission ?? '' };
      const listed = await takeFirst(openClient(cli, flags).webhooks.listDeliveries(request), limit);
      if (flags.json) printJsonList(cli, WebhookDeliverySchema, listed);
      else print(cli, deliveryTable(listed));
    });
  command('delivery')
    .description('show one delivery with all attempts and responses')
    .argument(...WEBHOOK_ID)
    .argument(...DELIVERY_ID)
    .action(async (id: string, deliveryId: string, flags: WebhookFlags) => {
      const delivery = await openClient(cli, flags).webhooks.getDelivery({ id, deliveryId });
      if (flags.json) printJson(cli, WebhookDeliverySchema, delivery);
      else print(cli, deliveryText(delivery));
    });
  command('redeliver')
    .description('redeliver one delivery, or all failed ones since a time')
    .argument(...WEBHOOK_ID)
    .argument('[delivery]', DELIVERY_ID[1])
    .option('--since <time>', 'failed deliveries created at or after this time, RFC 3339')
    .action((id: string, delivery: string | undefined, flags: WebhookFlags & { since?: string }) =>
      redeliver(cli, flags, openClient(cli, flags), id, delivery),
    );
}

async function redeliver(
  cli: Cli,
  flags: WebhookFlags & { since?: string },
  { webhooks }: Client,
  id: string,
  deliveryId: string | undefined,
): Promise<void> {
  if ((deliveryId === undefined) === (flags.since === undefined))
    throw new UsageError('name a delivery, or a time with --since');
  if (deliveryId !== undefined) {
    const delivery = await webhooks.redeliverDelivery({ id, deliveryId });
    if (flags.json) printJson(cli, WebhookDeliverySchema, delivery);
    else print(cli, `${delivery.id}  ${redeliveryText(await webhooks.get(id))}`);
    return;
  }
  const since = new Date(flags.since ?? '');
  if (Number.isNaN(since.getTime())) throw new UsageError('--since is not an RFC 3339 time');
  const webhook = await webhooks.redeliverFailedDeliveries({ id, since: timestampFromDate(since) });
  if (flags.json) printWebhook(cli, flags, webhook);
  else
    print(
      cli,
      `failed since ${since.toISOString()}  ${redeliveryText(webhook)} (${webhook.redelivering} deliveries)`,
    );
}

/** What happens to a redelivery; a disabled subscription sends only tests. */
function redeliveryText({ status }: Webhook): string {
  return status === WebhookStatus.DISABLED
    ? 'waits: the subscription is disabled; enable it with `attest webhooks update --enable`'
    : 'queued again';
}

async function takeFirst<T>(items: AsyncIterable<T>, most: number): Promise<T[]> {
  const taken: T[] = [];
  for await (const item of items) {
    if (taken.push(item) === most) break;
  }
  return taken;
}

function parseStatus(text: string): DeliveryStatus {
  const status = findEnumNumber(DeliveryStatusSchema, text);
  if (status === undefined)
    throw new UsageError(`--status is not one of ${enumNames(DeliveryStatusSchema).join(', ')}`);
  return status as DeliveryStatus;
}
