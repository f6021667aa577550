/** The flags of `attest audit`. */
import type { Command } from 'commander';
import { duration, integer, outboundUrl, publicUrl } from '../../config/setting-types.js';
import { type Env, parseValue, type SettingType } from '../../config/settings.js';
import type { TlogPolicy } from '../../proof/log/tlog-policy.js';
import { findSecretBytes } from '../../server/webhooks/delivery/sign.js';
import { UsageError } from '../cli.js';
import type { ClientFlags } from '../flags/client-flags.js';
import { readInputFile } from '../input/input-file.js';
import type { WebhookTarget } from './alarm/alarm-webhook.js';
import { countQuorum, policyQuorum, type Quorum, readPolicyFile } from './checkpoint/quorum.js';

/** Flags as commander gives them. */
export type AuditFlags = ClientFlags & {
  trustRoots?: string;
  verifyUrl?: string;
  origin?: string;
  state?: string;
  bundle?: string[];
  batches?: boolean;
  statements?: string[];
  mirror?: string[];
  witness?: string[];
  quorum?: string;
  policy?: string;
  maxAge?: string;
  follow?: boolean;
  poll?: string;
  keepGoing?: boolean;
  evidence?: string;
  webhook?: string;
  webhookSecretFile?: string;
  metrics?: string;
  json?: boolean;
};

/** Parsed flags of an audit, with its sources to compare and its webhook. */
export type WatchOptions = {
  readonly mirrors: readonly string[];
  readonly witnesses: readonly string[];
  readonly quorum: Quorum | undefined;
  readonly policy: TlogPolicy | undefined;
  readonly maxAgeMs: number | undefined;
  readonly pollMs: number;
  readonly webhook: WebhookTarget | undefined;
  readonly metrics: { readonly host: string; readonly port: number } | undefined;
};

const SECRET_VARIABLE = 'ATTEST_AUDIT_WEBHOOK_SECRET';
const MAX_SECRET_BYTES = 1024;
const DEFAULT_POLL = '10s';

/** Adds the flags about following a log, and about others that show it. */
export function addWatchFlags(command: Command): Command {
  const repeatable = (value: string, before: string[] = []) => [...before, value];
  return command
    .option('--origin <name>', 'the log to audit, by its origin (default: all)')
    .option(
      '--statements <path>',
      'bundle, exported object, or directory of them to look for; repeatable',
      repeatable,
    )
    .option('--mirror <url>', 'another place that serves the log; repeatable', repeatable)
    .option('--witness <url>', 'a C2SP witness of the log (its monitoring prefix); repeatable', repeatable)
    .option('--quorum <n>', 'how many witnesses of the trust roots must have cosigned the checkpoint')
    .option('--policy <file>', 'C2SP tlog-policy whose quorum must have cosigned it, with its own witnesses')
    .option('--max-age <duration>', 'raise an alarm if the log shows nothing new for so long, such as 1h')
    .option('--follow', 'go on for ever')
    .option('--poll <duration>', `with --follow: time between two rounds (default: ${DEFAULT_POLL})`)
    .option('--keep-going', 'with --follow: go on after an alarm that a log is not intact')
    .option('--evidence <dir>', 'directory for the notes that prove an alarm')
    .option('--webhook <url>', `send alarms there, signed with the secret in ${SECRET_VARIABLE}`)
    .option('--webhook-secret-file <file>', `file with the secret, in place of ${SECRET_VARIABLE}`)
    .option('--metrics <host:port>', 'with --follow: serve Prometheus metrics');
}

/** Parses the flags. Throws UsageError. */
export async function readWatchFlags(env: Env, flags: AuditFlags): Promise<WatchOptions> {
  for (const name of ['poll', 'keepGoing', 'metrics'] as const) {
    if (flags[name] !== undefined && !flags.follow)
      throw new UsageError(`--${name === 'keepGoing' ? 'keep-going' : name} needs --follow`);
  }
  const { quorum, maxAge, poll = DEFAULT_POLL } = flags;
  if (quorum !== undefined && flags.policy !== undefined)
    throw new UsageError('--quorum and --policy exclude each other');
  const policy = flags.policy === undefined ? undefined : await readPolicyFile(flags.policy);
  return {
    mirrors: (flags.mirror ?? []).map((url) => parseFlag('--mirror', publicUrl, url)),
    witnesses: (flags.witness ?? []).map((url) => parseFlag('--witness', publicUrl, url)),
    quorum:
      quorum === undefined
        ? policy && policyQuorum(policy)
        : countQuorum(parseFlag('--quorum', integer(1, 64), quorum)),
    policy,
    maxAgeMs: maxAge === undefined ? undefined : parseFlag('--max-age', duration('1s', '3650d'), maxAge),
    pollMs: parseFlag('--poll', duration('100ms', '1d'), poll),
    webhook: await readWebhook(env, flags),
    metrics: flags.metrics === undefined ? undefined : parseAddress(flags.metrics),
  };
}

/** Parses the value of a flag as that of a setting. Throws UsageError. */
export function parseFlag<T>(flag: string, type: SettingType<T>, text: string): T {
  const reasons: string[] = [];
  const report = ({ problem, expected }: { problem: string; expected: string }) =>
    void reasons.push(`${problem}; expected ${expected}`);
  const value = parseValue(report, flag, type, text);
  if (value === undefined) throw new UsageError(`${flag} ${reasons.join()}`);
  return value;
}

async function readWebhook(env: Env, flags: AuditFlags): Promise<WebhookTarget | undefined> {
  const { webhook, webhookSecretFile: file } = flags;
  if (webhook === undefined) {
    if (file !== undefined) throw new UsageError('--webhook-secret-file needs --webhook');
    return undefined;
  }
  const from = file ?? SECRET_VARIABLE;
  const secret = file === undefined ? env[SECRET_VARIABLE] : await readSecret(file);
  if (secret === undefined || secret === '')
    throw new UsageError(`--webhook needs a secret in ${SECRET_VARIABLE} or --webhook-secret-file`);
  const key = findSecretBytes(secret.trim());
  if (key === undefined)
    throw new UsageError(`${from} does not hold a secret: whsec_ and 24 to 64 bytes in base64`);
  return { url: parseFlag('--webhook', outboundUrl, webhook), key };
}

async function readSecret(file: string): Promise<string> {
  return Buffer.from(await readInputFile(file, 'a secret', MAX_SECRET_BYTES)).toString('utf8');
}

function parseAddress(text: string): { host: string; port: number } {
  const match = /^(\[[0-9a-f:.]+\]|[^\s:/[\]]+):(\d{1,5})$/i.exec(text);
  const port = Number(match?.[2]);
  if (match === null || port > 65_535)
    throw new UsageError('--metrics is not a host and a port, such as 127.0.0.1:9100');
  return { host: match[1]!.replace(/^\[|\]$/g, ''), port };
}
