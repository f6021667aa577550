import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { Command } from 'commander';
import {
  type DeliveryStatus,
  DeliveryStatusSchema,
  EventType,
  EventTypeSchema,
  WebhookDeliverySchema,
  WebhookSchema,
  WebhookStatus,
} from '../../gen/attestation/v1/webhooks_pb.js';
import type { Client } from '../client/client.js';
import { findBySpelling, spellings } from '../spelling.js';
import { printJson, printJsonList } from './admin-flags.js';
import { type Cli, print, UsageError } from './cli.js';
import { addClientFlags, CLIENT_HELP, type ClientFlags, openClient, parseCount } from './client-flags.js';
import { deliveryTable, webhookTable, webhookText } from './webhook-text.js';
import { addListen } from './webhooks-listen.js';

type Flags = ClientFlags & { json?: boolean };

const HELP = `${CLIENT_HELP}

Examples:
  $ attest webhooks listen --forward http://localhost:3000/hooks
  $ attest webhooks create https://ci.example.com/hooks --event attestation.witnessed
  $ attest webhooks deliveries whk_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T --status failed
  $ attest webhooks redeliver whk_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T --since 2026-01-31T12:00:00Z`;

/** `attest webhooks`. */
export function addWebhooks(program: Command, cli: Cli): void {
  const webhooks = program
    .command('webhooks')
    .description('make, list, test and listen to subscriptions to events')
    .addHelpText('after', HELP);
  const command = (name: string) =>
    addClientFlags(webhooks.command(name)).option('--json', 'print JSON').addHelpText('after', HELP);
  addListen(command('listen'), cli);
  addChanges(command, cli);
  addReadings(command, cli);
  addDeliveries(command, cli);
}

type Add = (name: string) => Command;
const ID = ['<id>', 'the id of the subscription, whk_...'] as const;

function addChanges(command: Add, cli: Cli): void {
  command('create')
    .description('subscribe an address to events; prints the signing secret, once')
    .argument('<address>', 'where events are sent')
    .option('--event <type...>', `which events (all): ${subscribable().join(', ')}`)
    .option('--secret <secret>', 'a signing secret of your own; one is made without it')
    .action(async (address: string, flags: Flags & { event?: string[]; secret?: string }) => {
      const events = parseEvents(flags.event);
      const { secret } = flags;
      const made = await openClient(cli, flags).webhooks.create({
        url: address,
        events,
        ...(secret === undefined ? {} : { secret }),
      });
      show(cli, flags, made);
    });
  command('update')
    .description('change what is named of a subscription')
    .argument(...ID)
    .option('--address <address>', 'where events are sent')
    .option('--event <type...>', 'which events')
    .option('--disable', 'send nothing until it is enabled')
    .option('--enable', 'send again')
    .action(async (id: string, flags: Flags & UpdateFlags) => {
      show(cli, flags, await openClient(cli, flags).webhooks.update(updateOf(id, flags)));
    });
  command('rotate')
    .description('give a subscription a new secret; the old one signs along for 24 hours')
    .argument(...ID)
    .action(async (id: string, flags: Flags) =>
      show(cli, flags, await openClient(cli, flags).webhooks.rotateSecret({ id })),
    );
  command('delete')
    .description('delete a subscription')
    .argument(...ID)
    .action(async (id: string, flags: Flags) =>
      show(cli, flags, await openClient(cli, flags).webhooks.delete({ id })),
    );
}

type UpdateFlags = { address?: string; event?: string[]; disable?: boolean; enable?: boolean };

function updateOf(id: string, { address, event, disable, enable }: UpdateFlags) {
  if (disable && enable) throw new UsageError('--disable and --enable exclude each other');
  const status = disable ? WebhookStatus.DISABLED : WebhookStatus.ACTIVE;
  return {
    id,
    ...(address === undefined ? {} : { url: address }),
    ...(event === undefined ? {} : { events: parseEvents(event) }),
    ...(disable || enable ? { status } : {}),
  };
}

function addReadings(command: Add, cli: Cli): void {
  command('list')
    .description('list the subscriptions, newest first')
    .action(async (flags: Flags) => {
      const all = await collect(openClient(cli, flags).webhooks.list());
      if (flags.json) printJsonList(cli, WebhookSchema, all);
      else print(cli, webhookTable(all));
    });
  command('get')
    .description('show one subscription')
    .argument(...ID)
    .action(async (id: string, flags: Flags) =>
      show(cli, flags, await openClient(cli, flags).webhooks.get(id)),
    );
}

function addDeliveries(command: Add, cli: Cli): void {
  command('test')
    .description('send a test event to a subscription')
    .argument(...ID)
    .action(async (id: string, flags: Flags) => {
      const delivery = await openClient(cli, flags).webhooks.test({ id });
      if (flags.json) printJson(cli, WebhookDeliverySchema, delivery);
      else print(cli, `${delivery.id}  is on its way`);
    });
  command('deliveries')
    .description('list what was sent to a subscription, newest first')
    .argument(...ID)
    .option('--status <status>', `only these: ${spellings(DeliveryStatusSchema).join(', ')}`)
    .option('--limit <count>', 'how many', '50')
    .action(async (id: string, flags: Flags & { status?: string; limit: string }) => {
      const limit = parseCount('--limit', flags.limit, 200);
      const status = flags.status === undefined ? 0 : parseStatus(flags.status);
      const { data } = await openClient(cli, flags).webhooks.listDeliveries({ id, limit, status });
      if (flags.json) printJsonList(cli, WebhookDeliverySchema, data);
      else print(cli, deliveryTable(data));
    });
  command('redeliver')
    .description('send a delivery again, or all failed ones since a time')
    .argument(...ID)
    .argument('[delivery]', 'the id of the delivery, dlv_...')
    .option('--since <time>', 'all that failed and were made at or after this time, RFC 3339')
    .action((id: string, delivery: string | undefined, flags: Flags & { since?: string }) =>
      redeliver(cli, flags, openClient(cli, flags), id, delivery),
    );
}

async function redeliver(
  cli: Cli,
  flags: Flags & { since?: string },
  { webhooks }: Client,
  id: string,
  deliveryId: string | undefined,
): Promise<void> {
  if ((deliveryId === undefined) === (flags.since === undefined))
    throw new UsageError('name a delivery, or a time with --since');
  if (deliveryId !== undefined) {
    const delivery = await webhooks.redeliverDelivery({ id, deliveryId });
    if (flags.json) printJson(cli, WebhookDeliverySchema, delivery);
    else print(cli, `${delivery.id}  is on its way again`);
    return;
  }
  const since = new Date(flags.since ?? '');
  if (Number.isNaN(since.getTime())) throw new UsageError('--since is not a time');
  show(cli, flags, await webhooks.redeliverFailedDeliveries({ id, since: timestampFromDate(since) }));
}

function show(cli: Cli, { json }: Flags, webhook: Awaited<ReturnType<Client['webhooks']['get']>>): void {
  if (json) printJson(cli, WebhookSchema, webhook);
  else print(cli, webhookText(webhook));
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

function subscribable(): string[] {
  const test = EventTypeSchema.value[EventType.WEBHOOK_TEST];
  return spellings(EventTypeSchema).filter((text) => findBySpelling(EventTypeSchema, text) !== test?.number);
}

function parseEvents(texts: readonly string[] = subscribable()): EventType[] {
  return texts.map((text) => {
    if (!subscribable().includes(text)) {
      throw new UsageError(
        `there is no event ${text} to subscribe to; there are ${subscribable().join(', ')}`,
      );
    }
    return findBySpelling(EventTypeSchema, text) as EventType;
  });
}

function parseStatus(text: string): DeliveryStatus {
  const status = findBySpelling(DeliveryStatusSchema, text);
  if (status === undefined)
    throw new UsageError(`--status is none of ${spellings(DeliveryStatusSchema).join(', ')}`);
  return status as DeliveryStatus;
}
