import { type Command, Option } from 'commander';
import { EnvironmentSchema } from '../../gen/attestation/v1/environment_pb.js';
import type { KeyManager } from '../app/contract.js';
import { duration } from '../config/kinds.js';
import { readConfig } from '../config.js';
import { spellingOf } from '../spelling.js';
import type { ApiKeyRow } from '../store/api-keys.js';
import { type Cli, print, printable, printError, UsageError } from './cli.js';
import { withFlags } from './run-server.js';
import { formatTable } from './table.js';

type Flags = { dataDir?: string; json?: boolean };
type CreateFlags = Flags & {
  environment: 'live' | 'test';
  project?: string;
  name: string;
  scope?: string[];
  expires?: string;
};

const HELP = `
Works on the database of DATABASE_URL, or on the one that attest up runs over the data directory.

Examples:
  $ attest keys create --environment live --name ci --scope attestations:write --scope attestations:read
  $ attest keys list
  $ attest keys revoke key_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T`;

/** `attest keys`. */
export function addKeys(program: Command, cli: Cli): void {
  const keys = program
    .command('keys')
    .description('make, list and revoke API keys')
    .addHelpText('after', HELP);
  addCommonFlags(keys.command('create'))
    .description('make a key; it is printed once and cannot be had again')
    .addOption(
      new Option('--environment <environment>', 'the log it writes to')
        .choices(['live', 'test'])
        .makeOptionMandatory(),
    )
    .option('--project <id>', 'the project it belongs to; needed when there are several')
    .option('--name <name>', 'what it is called in lists', 'unnamed')
    .option('--scope <scope...>', 'what it may do; everything when left out')
    .option('--expires <span>', 'for how long it is valid, such as 90d; for ever when left out')
    .action((flags: CreateFlags) => withKeys(cli, flags, (manager) => create(cli, manager, flags)));
  addCommonFlags(keys.command('list'))
    .description('list keys, without their secrets')
    .option('--project <id>', 'only those of this project')
    .action((flags: Flags & { project?: string }) =>
      withKeys(cli, flags, (manager) => list(cli, manager, flags)),
    );
  addCommonFlags(keys.command('revoke'))
    .description('revoke a key for good, within ten seconds everywhere')
    .argument('<id>', 'the id of the key, key_...')
    .action((id: string, flags: Flags) => withKeys(cli, flags, (manager) => revoke(cli, manager, id, flags)));
}

function addCommonFlags(command: Command): Command {
  return command
    .option('--data-dir <dir>', 'the data directory of `attest up` (DATA_DIR, .data)')
    .option('--json', 'print JSON')
    .addHelpText('after', HELP);
}

async function withKeys(cli: Cli, flags: Flags, use: (manager: KeyManager) => Promise<void>): Promise<void> {
  const config = readConfig(withFlags(cli.env, flags), { process: 'keys' });
  const app = await import('../app.js');
  await app.withKeys(config, use).catch((error: Error & { code?: unknown }) => {
    if (error.code !== 'ECONNREFUSED') throw error;
    const hint = config.databaseUrl === undefined ? 'is attest up running?' : 'is DATABASE_URL right?';
    throw new Error(`the database does not answer (${error.message}): ${hint}`, { cause: error });
  });
}

async function create(cli: Cli, manager: KeyManager, flags: CreateFlags): Promise<void> {
  const { environment, project: projectId, name, scope: scopes } = flags;
  const expiresAt = flags.expires === undefined ? undefined : expiry(cli, flags.expires);
  const { key, row } = await manager.create({ environment, projectId, name, scopes, expiresAt });
  if (flags.json) return print(cli, JSON.stringify({ key, ...keyJson(row) }));
  printError(cli, `${row.id}: this is the only time the key is shown`);
  print(cli, key);
}

function expiry({ now }: Cli, text: string): Date {
  const kind = duration('1m', '3650d');
  try {
    return new Date(now().getTime() + kind.parse(text));
  } catch {
    throw new UsageError(`--expires is not ${kind.expected}`);
  }
}

async function list(cli: Cli, manager: KeyManager, flags: Flags & { project?: string }): Promise<void> {
  const rows = await manager.list(flags.project);
  if (flags.json) return print(cli, JSON.stringify(rows.map(keyJson)));
  const head = ['ID', 'KEY', 'NAME', 'PROJECT', 'CREATED', 'LAST USED', 'STATE'];
  const cells = rows.map((row) => [
    row.id,
    `${row.prefix}…${row.last4}`,
    printable(row.name),
    row.projectId,
    day(row.createdAt),
    day(row.lastUsedAt),
    stateOf(row, cli.now()),
  ]);
  print(cli, rows.length === 0 ? 'no keys' : formatTable([head, ...cells]));
}

async function revoke(cli: Cli, manager: KeyManager, id: string, { json }: Flags): Promise<void> {
  const row = await manager.revoke(id);
  if (row === undefined) throw new Error(`there is no key ${id}`);
  print(cli, json ? JSON.stringify(keyJson(row)) : `${row.id} is revoked`);
}

function keyJson(row: ApiKeyRow) {
  return {
    id: row.id,
    name: row.name,
    project_id: row.projectId,
    environment: spellingOf(EnvironmentSchema, row.environment),
    prefix: row.prefix,
    last4: row.last4,
    scopes: row.scopes,
    created_at: row.createdAt,
    expires_at: row.expiresAt,
    revoked_at: row.revokedAt,
    last_used_at: row.lastUsedAt,
  };
}

function stateOf({ revokedAt, expiresAt }: ApiKeyRow, now: Date): string {
  if (revokedAt !== null) return `revoked ${day(revokedAt)}`;
  if (expiresAt === null) return 'active';
  return expiresAt <= now ? `expired ${day(expiresAt)}` : `active until ${day(expiresAt)}`;
}

function day(at: Date | null): string {
  return at === null ? '-' : at.toISOString().slice(0, 10);
}
