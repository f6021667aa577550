import { type Command, Option } from 'commander';
import { readConfig } from '../../../config/config.js';
import type { EnvironmentName } from '../../../protocol/environment.js';
import type { DsseKeyManager, DsseKeyStatus } from '../../../server/attestations/signing/dsse-key-manager.js';
import { type Cli, print, UsageError } from '../../cli.js';
import { parseDuration } from '../../flags/flag-values.js';
import { readWithFlags } from '../../flags/setting-flags.js';
import { addHelp } from '../../output/help.js';
import { formatTable } from '../../output/table.js';

type Flags = { dataDir?: string; json?: boolean };
type RotateFlags = Flags & { environment: EnvironmentName; after: string };

const HELP = `
Uses the database of DATABASE_URL, or that of \`attest up\` in the data directory.

To rotate: add the file of the new key to DSSE_KEY_FILE beside the old one (live=old.pem,live=new.pem,test=...) and restart
every process; the trust roots publish the key from then on. Then \`rotate\` sets from when it signs. All processes switch
at that time, by the database's clock. The old key stays trusted until witnesses have dated everything that it signed, and
an hour more. Remove its file when \`list\` shows it as ending or ended.

\`revoke\` is for a stolen or unwanted key: bundles that witnesses date later than that no longer verify.`;

const EXAMPLES = [
  'attest dsse-keys list',
  'attest dsse-keys rotate --environment live --after 24h',
  'attest dsse-keys cancel --environment live',
  'attest dsse-keys revoke 1 --at 2026-01-02T03:04:05Z',
];

/** Processes learn of a rotation within a minute. */
const [MIN_NOTICE, MAX_NOTICE] = ['2m', '90d'];

/** `attest dsse-keys`. */
export function addDsseKeys(program: Command, cli: Cli): void {
  const keys = addHelp(program.command('dsse-keys'), HELP, EXAMPLES);
  const act = (flags: Flags, use: (manager: DsseKeyManager) => Promise<readonly DsseKeyStatus[]>) =>
    withKeys(cli, flags, async (manager) => show(cli, flags, await use(manager)));
  addFlags(keys.command('list'))
    .description('list keys, oldest first')
    .action((flags: Flags) => act(flags, (manager) => manager.list()));
  addEnvironment(addFlags(keys.command('rotate')))
    .description('set from when a published key signs')
    .argument('[id]', 'key ID (default: the only published and unused key)', parseId)
    .option('--after <duration>', 'how long from now, such as 24h; at least 2m', '1h')
    .action((id: number | undefined, { environment, after, ...flags }: RotateFlags) => {
      const afterMs = parseDuration('--after', after, MIN_NOTICE, MAX_NOTICE);
      return act(flags, async (manager) => [await manager.rotate(environment, { id, afterMs })]);
    });
  addEnvironment(addFlags(keys.command('cancel')))
    .description('take a scheduled rotation back')
    .action(({ environment, ...flags }: RotateFlags) =>
      act(flags, async (manager) => [await manager.cancel(environment)]),
    );
  addFlags(keys.command('revoke'))
    .description('end the trust in a key that does not sign')
    .argument('<id>', 'key ID', parseId)
    .option(
      '--at <time>',
      'RFC 3339 time from which it is not trusted, such as that of a theft (default: now)',
    )
    .action((id: number, { at, ...flags }: Flags & { at?: string }) =>
      act(flags, async (manager) => [await manager.revoke(id, at === undefined ? undefined : parseTime(at))]),
    );
}

function addFlags(command: Command): Command {
  return addHelp(command, HELP, EXAMPLES)
    .option('--data-dir <dir>', 'data directory of `attest up` (DATA_DIR, default: .data)')
    .option('--json', 'print JSON');
}

function addEnvironment(command: Command): Command {
  const option = new Option('--environment <environment>', 'environment of the key');
  return command.addOption(option.choices(['live', 'test']).makeOptionMandatory());
}

function parseId(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new UsageError(`${text} is not the ID of a key`);
  return Number(text);
}

function parseTime(text: string): Date {
  const time = new Date(text);
  if (!/^\d{4}-\d\d-\d\dT.*(Z|[+-]\d\d:\d\d)$/.test(text) || Number.isNaN(time.getTime())) {
    throw new UsageError('--at is not an RFC 3339 time');
  }
  return time;
}

async function withKeys(
  cli: Cli,
  flags: Flags,
  use: (manager: DsseKeyManager) => Promise<void>,
): Promise<void> {
  const config = readWithFlags(cli.env, flags, (env) => readConfig(env, { process: 'dsse-keys' }));
  await (await import('../../../server/process/run.js')).withDsseKeys(config, use);
}

function show(cli: Cli, { json }: Flags, keys: readonly DsseKeyStatus[]): void {
  if (json) {
    print(cli, JSON.stringify(keys.map(statusJson)));
    return;
  }
  const cells = keys.map((key) => [
    String(key.id),
    key.environment,
    key.waitsFor.length === 0 ? key.state : `${key.state}, waits for witnesses of ${key.waitsFor.join(', ')}`,
    key.publishedAt.toISOString(),
    key.activeFrom?.toISOString() ?? '-',
    key.validTo?.toISOString() ?? '-',
    key.fingerprint,
  ]);
  const head = ['ID', 'ENVIRONMENT', 'STATE', 'PUBLISHED', 'SIGNS FROM', 'TRUSTED UNTIL', 'FINGERPRINT'];
  print(cli, formatTable([head, ...cells]));
}

function statusJson({ publishedAt, activeFrom, validTo, waitsFor, ...key }: DsseKeyStatus) {
  return {
    ...key,
    published_at: publishedAt,
    active_from: activeFrom,
    valid_to: validTo,
    waits_for: waitsFor,
  };
}
