import type { Command } from 'commander';
import { type Webhook, WebhookSchema } from '../../../gen/attestation/v1/webhooks_pb.js';
import { type Cli, print } from '../cli.js';
import { webhookText } from '../output/webhook-text.js';
import { printJson } from './admin-flags.js';
import type { ClientFlags } from './client-flags.js';

/** Flags of every `attest webhooks` command. */
export type Flags = ClientFlags & { json?: boolean };

/** Adds a command with these flags. */
export type Add = (name: string) => Command;

/** The argument that names a subscription. */
export const ID = ['<id>', 'the id of the subscription, whk_...'] as const;

/** Prints a subscription. */
export function show(cli: Cli, { json }: Flags, webhook: Webhook): void {
  if (json) printJson(cli, WebhookSchema, webhook);
  else print(cli, webhookText(webhook));
}
