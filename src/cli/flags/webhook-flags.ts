import type { Command } from 'commander';
import { type Webhook, WebhookSchema } from '../../../gen/attestation/v1/webhooks_pb.js';
import { type Cli, print } from '../cli.js';
import { webhookText } from '../output/webhook-text.js';
import { printJson } from './admin-flags.js';
import type { ClientFlags } from './client-flags.js';

/** Flags of every `attest webhooks` command. */
export type WebhookFlags = ClientFlags & { json?: boolean };

/** Adds a subcommand of `attest webhooks` with these flags. */
export type AddSubcommand = (name: string) => Command;

/** The argument for the subscription. */
export const WEBHOOK_ID = ['<id>', 'subscription ID, whk_...'] as const;

/** Prints a subscription. */
export function printWebhook(cli: Cli, { json }: WebhookFlags, webhook: Webhook): void {
  if (json) printJson(cli, WebhookSchema, webhook);
  else print(cli, webhookText(webhook));
}
