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

/** `role_arn` is `--role-arn <value>`; the secret `token` is `--token-file <file>`. */
function flagOf(field: DescField): { flag: string; help: string; name: string; key: string } {
  // `--url` is the address of the service.
  if (field.name === 'url')
    return {
      flag: '--repository <url>',
      help: 'url of the destination',
      name: 'repository',
      key: 'repository',
    };
  const plain = field.name.replaceAll('_', '-');
  if (!isSecret(field))
    return {
      flag: `--${plain} <value>`,
      help: `${field.name} of the destination`,
      name: plain,
      key: field.localName,
    };
  return {
    flag: `--${plain}-file <file>`,
    help: `file with the ${field.name} of the destination`,
    name: `${plain}-file`,
    key: `${field.localName}File`,
  };
}
