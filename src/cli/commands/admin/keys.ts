import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { type Command, Option } from 'commander';
import {
  type ApiKey,
  ApiKeySchema,
  ApiKeyService,
} from '../../../../gen/attestation/admin/v1/api_keys_pb.js';
import type { AdminCall } from '../../../client/admin.js';
import { type EnvironmentName, environmentNumber } from '../../../protocol/environment.js';
import { type Cli, print, printError, UsageError } from '../../cli.js';
import {
  ADMIN_HELP,
  type AdminFlags,
  addAdminFlags,
  collectPages,
  printJson,
  printJsonList,
  withAdminApi,
} from '../../flags/admin-flags.js';
import { parseDuration } from '../../flags/flag-values.js';
import { addKeyFlags, expiryChange, type KeyFlags, keyFields, parseExpiry } from '../../flags/key-flags.js';
import { findOnlyProject } from '../../flags/only-project.js';
import { addHelp } from '../../output/help.js';
import { keyTable, keyText } from '../../output/key-text.js';

type CreateFlags = KeyFlags & { environment: EnvironmentName; project?: string; name: string };
type RotateFlags = AdminFlags & { overlap?: string; expires?: string };

const HELP = `
The first key of an installation is created the same way; \`attest up\` creates one for each environment.
${ADMIN_HELP}`;

const EXAMPLES = [
  'attest keys create --environment live --name ci --scope attestations:write --scope attestations:read',
  'attest keys list --project prj_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T',
  'attest keys get key_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T',
  'attest keys update key_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T --submissions-per-second 200',
  'attest keys rotate key_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T --overlap 2h',
  'attest keys revoke key_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T',
];

const { createApiKey, getApiKey, listApiKeys, updateApiKey, revokeApiKey, rotateApiKey } =
  ApiKeyService.method;

/** `attest keys`. */
export function addKeys(program: Command, cli: Cli): void {
  const keys = addHelp(program.command('keys'), HELP, EXAMPLES);
  const command = (name: string) => addHelp(addAdminFlags(keys.command(name)), HELP, EXAMPLES);
  const ofKey = (name: string) => command(name).argument('<id>', 'API key ID, key_...');
  addKeyFlags(command('create'), { isNew: true })
    .description('create a key; it is shown only once')
    .addOption(
      new Option('--environment <environment>', 'environment of the key')
        .choices(['live', 'test'])
        .makeOptionMandatory(),
    )
    .option('--project <id>', 'project of the key (default: the only project)')
    .option('--name <name>', 'display name', 'unnamed')
    .action((flags: CreateFlags) => withAdminApi(cli, flags, (call) => create(cli, call, flags)));
  command('list')
    .description('list keys, newest first, without secrets')
    .option('--project <id>', 'only keys of this project')
    .action((flags: AdminFlags & { project?: string }) =>
      withAdminApi(cli, flags, (call) => list(cli, call, flags)),
    );
  ofKey('get')
    .description('show one key, without its secret')
    .action((id: string, flags: AdminFlags) =>
      withAdminApi(cli, flags, async (call) => show(cli, flags, await call(getApiKey, { id }))),
    );
  addKeyFlags(ofKey('update'), { isNew: false })
    .description('change the given fields of a key at once')
    .option('--name <name>', 'display name')
    .action((id: string, flags: KeyFlags) =>
      withAdminApi(cli, flags, async (call) => {
        const { limits, ...changes } = { ...keyFields(flags), ...expiryChange(cli, flags) };
        if (Object.keys({ ...limits, ...changes }).length === 0) {
          throw new UsageError('nothing to change: give --name, --scope, --expires or a limit');
        }
        const request = { id, limits, ...changes };
        show(cli, flags, await call(updateApiKey, request));
      }),
    );
  ofKey('rotate')
    .description('create a replacement key; the old one keeps working for --overlap')
    .option('--overlap <duration>', 'how long the old key keeps working, 0s to 30d', '24h')
    .option('--expires <duration>', 'lifetime of the new key, such as 90d (default: expiry of the old key)')
    .action((id: string, flags: RotateFlags) =>
      withAdminApi(cli, flags, (call) => rotate(cli, call, id, flags)),
    );
  ofKey('revoke')
    .description('revoke a key at once; this cannot be undone')
    .action((id: string, flags: AdminFlags) =>
      withAdminApi(cli, flags, async (call) => {
        const key = await call(revokeApiKey, { id });
        if (flags.json) printJson(cli, ApiKeySchema, key);
        else print(cli, `${key.id} is revoked`);
      }),
    );
}

async function create(cli: Cli, call: AdminCall, flags: CreateFlags): Promise<void> {
  const rights = keyFields(flags);
  const expiresAt = parseExpiry(cli, flags.expires);
  const projectId = flags.project ?? (await findOnlyProject(call));
  const environment = environmentNumber(flags.environment);
  const request = { projectId, environment, ...rights, ...(expiresAt !== undefined && { expiresAt }) };
  printSecret(cli, flags, await call(createApiKey, request));
}

async function rotate(cli: Cli, call: AdminCall, id: string, flags: RotateFlags): Promise<void> {
  const overlap = durationFromMs(parseDuration('--overlap', flags.overlap ?? '24h', '0s', '30d'));
  const expiresAt = parseExpiry(cli, flags.expires);
  const request = { id, overlap, ...(expiresAt !== undefined && { expiresAt }) };
  printSecret(cli, flags, await call(rotateApiKey, request));
}

/** Prints only the secret on stdout, so that it can be piped. */
function printSecret(cli: Cli, { json }: AdminFlags, key: ApiKey): void {
  if (key.secret === undefined) {
    throw new Error(
      `${key.id} was created, but the response with its secret was lost: rotate it with --overlap 0s`,
    );
  }
  if (json) {
    printJson(cli, ApiKeySchema, key);
    return;
  }
  printError(cli, `${key.id}: the key is shown only once`);
  print(cli, key.secret);
}

async function list(
  cli: Cli,
  call: AdminCall,
  { json, project: projectId = '' }: AdminFlags & { project?: string },
): Promise<void> {
  const keys = await collectPages((page) => call(listApiKeys, { projectId, ...page }));
  if (json) printJsonList(cli, ApiKeySchema, keys);
  else print(cli, keys.length === 0 ? 'no keys' : keyTable(keys));
}

function show(cli: Cli, { json }: AdminFlags, key: ApiKey): void {
  if (json) printJson(cli, ApiKeySchema, key);
  else print(cli, keyText(key));
}
