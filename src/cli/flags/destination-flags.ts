import type { DescField } from '@bufbuild/protobuf';
import type { Command } from 'commander';
import { ExportDestinationSchema } from '../../../gen/attestation/v1/exports_pb.js';
import { UsageError } from '../cli.js';
import { readInputFile } from '../input/input-file.js';

/** A kind of destination, and the names of its members. */
type KindMembers = { kind: string; required: readonly string[]; optional: readonly string[] };

const MAX_SECRET_BYTES = 16 * 1024;

/** Adds a flag for each member of a destination. Secrets are read from files: arguments are visible to other users. */
export function addDestinationFlags(command: Command): void {
  for (const field of memberFields()) {
    const { flag, help } = flagOf(field);
    command.option(flag, help);
  }
}

/** Reads the members of a destination from its flags. Throws UsageError if one is missing or belongs to another kind. */
export async function readDestination(
  flags: Readonly<Record<string, unknown>>,
  { kind, required, optional }: KindMembers,
): Promise<Record<string, string>> {
  const members: Record<string, string> = {};
  for (const field of memberFields()) {
    const { key, name } = flagOf(field);
    const value = flags[key];
    if (typeof value !== 'string') {
      if (required.includes(field.name)) throw new UsageError(`${kind} needs --${name}`);
      continue;
    }
    if (!required.includes(field.name) && !optional.includes(field.name)) {
      const names = memberFields().filter((one) => [...required, ...optional].includes(one.name));
      const others = names.map((one) => `--${flagOf(one).name}`).join(', ');
      throw new UsageError(`--${name} is not a flag of ${kind}, which has ${others}`);
    }
    members[field.localName] = isSecret(field) ? await readSecret(value) : value;
  }
  return members;
}

async function readSecret(path: string): Promise<string> {
  const text = Buffer.from(await readInputFile(path, 'a secret', MAX_SECRET_BYTES)).toString('utf8');
  return text.startsWith('-----BEGIN') ? text : text.trim();
}

function memberFields(): readonly DescField[] {
  return ExportDestinationSchema.fields.filter(({ fieldKind }) => fieldKind === 'scalar');
}

function isSecret(field: DescField): boolean {
  return field.proto.options?.debugRedact === true;
}

/** What each member is, after the kinds that have it. */
const HELP: Readonly<Record<string, string>> = {
  bucket: 's3, gcs: name of the bucket',
  prefix: 'what the names of all objects start with, such as ci/attestations',
  role_arn: "s3: role to assume; its trust policy must require the project's ID as external ID",
  region: 's3: region of the bucket (default: us-east-1)',
  endpoint: 's3: https URL of a store other than AWS, with access keys',
  access_key_id: 's3: ID of an access key',
  secret_access_key: 's3: file with the secret of that access key',
  service_account: "gcs: address of the service account to impersonate; its ID must contain the project's",
  account_url: 'azure_blob: URL of the storage account',
  container: 'azure_blob: name of the container',
  sas_token: 'azure_blob: file with a SAS that may read, create and write blobs',
  url: 'git_repo: URL, https://... or ssh://git@host/path',
  branch: 'git_repo: branch (default: main)',
  token: 'git_repo: file with an access token, for https',
  ssh_key: 'git_repo: file with an unencrypted private key, for ssh',
  host_key: "git_repo: the server's public key, as ssh-keyscan prints it after the host's name, for ssh",
};

/** `role_arn` is `--role-arn <value>`; the secret `token` is `--token-file <file>`; `--url` is the service's address. */
function flagOf(field: DescField): { flag: string; help: string; name: string; key: string } {
  const help = HELP[field.name] ?? field.name;
  if (field.name === 'url')
    return { flag: '--repository <url>', help, name: 'repository', key: 'repository' };
  const plain = field.name.replaceAll('_', '-');
  if (!isSecret(field)) return { flag: `--${plain} <value>`, help, name: plain, key: field.localName };
  return { flag: `--${plain}-file <file>`, help, name: `${plain}-file`, key: `${field.localName}File` };
}
