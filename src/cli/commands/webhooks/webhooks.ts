import type { Command } from 'commander';
import {
  EventType,
  EventTypeSchema,
  WebhookSchema,
  WebhookStatus,
} from '../../../../gen/attestation/v1/webhooks_pb.js';
import { enumNames, findEnumNumber } from '../../../protocol/enum-names.js';
import { type Cli, print, UsageError } from '../../cli.js';
import { printJsonList } from '../../flags/admin-flags.js';
import { addClientFlags, CLIENT_HELP } from '../../flags/client-flags.js';
import { openClient } from '../../flags/open-client.js';
import {
  type AddSubcommand,
  printWebhook,
  WEBHOOK_ID,
  type WebhookFlags,
} from '../../flags/webhook-flags.js';
import { addHelp } from '../../output/help.js';
import { webhookTable } from '../../output/webhook-text.js';
import { addDeliveries } from './webhook-deliveries.js';
import { addListen } from './webhooks-listen.js';

const EXAMPLES = [
  'attest webhooks listen --forward-to http://localhost:3000/hooks',
  'attest webhooks create https://ci.example.com/hooks --event attestation.witnessed',
  'attest webhooks update whk_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T --disable',
  'attest webhooks rotate whk_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T',
  'attest webhooks delete whk_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T',
  'attest webhooks list',
  'attest webhooks get whk_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T',
  'attest webhooks test whk_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T',
  'attest webhooks deliveries whk_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T --status failed',
  'attest webhooks delivery whk_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T dlv_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T',
  'attest webhooks redeliver whk_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T --since 2026-01-31T12:00:00Z',
];

/** `attest webhooks`. */
export function addWebhooks(program: Command, cli: Cli): void {
  const webhooks = addHelp(program.command('webhooks'), CLIENT_HELP, EXAMPLES);
  const command = (name: string) =>
    addHelp(addClientFlags(webhooks.command(name)), CLIENT_HELP, EXAMPLES).option('--json', 'print JSON');
  addListen(command('listen'), cli);
  addWriteCommands(command, cli);
  addReadCommands(command, cli);
  addDeliveries(command, cli);
}

function addWriteCommands(command: AddSubcommand, cli: Cli): void {
  command('create')
    .description('subscribe a URL to events; the signing secret is shown only once')
    .argument('<url>', 'destination of the events')
    .option('--event <type...>', `events (default: all): ${subscribableEvents().join(', ')}`)
    .option('--secret <secret>', 'signing secret (default: a random one)')
    .action(async (address: string, flags: WebhookFlags & { event?: string[]; secret?: string }) => {
      const events = parseEvents(flags.event);
      const { secret } = flags;
      const made = await openClient(cli, flags).webhooks.create({
        url: address,
        events,
        ...(secret === undefined ? {} : { secret }),
      });
      printWebhook(cli, flags, made);
    });
  command('update')
    .description('change the given fields of a subscription')
    .argument(...WEBHOOK_ID)
    .option('--address <url>', 'destination of the events')
    .option('--event <type...>', 'events to send')
    .option('--disable', 'stop deliveries')
    .option('--enable', 'resume deliveries')
    .action(async (id: string, flags: WebhookFlags & UpdateFlags) => {
      printWebhook(cli, flags, await openClient(cli, flags).webhooks.update(updateRequest(id, flags)));
    });
  command('rotate')
    .description('rotate the signing secret; the old one keeps signing as well for 24 hours')
    .argument(...WEBHOOK_ID)
    .option('--secret <secret>', 'signing secret (default: a random one)')
    .action(async (id: string, flags: WebhookFlags & { secret?: string }) => {
      const { secret } = flags;
      const change = { id, ...(secret === undefined ? {} : { secret }) };
      printWebhook(cli, flags, await openClient(cli, flags).webhooks.rotateSecret(change));
    });
  command('delete')
    .description('delete a subscription')
    .argument(...WEBHOOK_ID)
    .action(async (id: string, flags: WebhookFlags) =>
      printWebhook(cli, flags, await openClient(cli, flags).webhooks.delete({ id })),
    );
}

type UpdateFlags = { address?: string; event?: string[]; disable?: boolean; enable?: boolean };

function updateRequest(id: string, { address, event, disable, enable }: UpdateFlags) {
  if (disable && enable) throw new UsageError('--disable and --enable are mutually exclusive');
  if (address === undefined && event === undefined && !disable && !enable)
    throw new UsageError('nothing to change: give --address, --event, --disable or --enable');
  const status = disable ? WebhookStatus.DISABLED : WebhookStatus.ACTIVE;
  return {
    id,
    ...(address === undefined ? {} : { url: address }),
    ...(event === undefined ? {} : { events: parseEvents(event) }),
    ...(disable || enable ? { status } : {}),
  };
}

function addReadCommands(command: AddSubcommand, cli: Cli): void {
  command('list')
    .description('list subscriptions, newest first')
    .action(async (flags: WebhookFlags) => {
      const all = await collect(openClient(cli, flags).webhooks.list());
      if (flags.json) printJsonList(cli, WebhookSchema, all);
      else print(cli, webhookTable(all));
    });
  command('get')
    .description('show one subscription')
    .argument(...WEBHOOK_ID)
    .action(async (id: string, flags: WebhookFlags) =>
      printWebhook(cli, flags, await openClient(cli, flags).webhooks.get(id)),
    );
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

function subscribableEvents(): string[] {
  const test = EventTypeSchema.value[EventType.WEBHOOK_TEST];
  return enumNames(EventTypeSchema).filter((text) => findEnumNumber(EventTypeSchema, text) !== test?.number);
}

function parseEvents(texts: readonly string[] = subscribableEvents()): EventType[] {
  return texts.map((text) => {
    if (!subscribableEvents().includes(text)) {
      throw new UsageError(`unknown event ${text}; the events are ${subscribableEvents().join(', ')}`);
    }
    return findEnumNumber(EventTypeSchema, text) as EventType;
  });
}
