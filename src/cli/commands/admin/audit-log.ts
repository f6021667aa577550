import { type Timestamp, timestampDate, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type Command, Option } from 'commander';
import {
  AuditActionSchema,
  AuditActorKind,
  type AuditEntry,
  AuditEntrySchema,
  AuditService,
} from '../../../../gen/attestation/admin/v1/audit_pb.js';
import { enumName, enumNames, findEnumNumber } from '../../../protocol/enum-names.js';
import { printable } from '../../../protocol/printable.js';
import { type Cli, print, UsageError } from '../../cli.js';
import {
  ADMIN_HELP,
  type AdminFlags,
  addAdminFlags,
  collectPages,
  printJsonList,
  withAdminApi,
} from '../../flags/admin-flags.js';
import { parseCount } from '../../flags/flag-values.js';
import { personText } from '../../output/people/person-text.js';
import { formatTable } from '../../output/table.js';

type Flags = AdminFlags & {
  project?: string;
  action?: string;
  resource?: string;
  after?: string;
  before?: string;
  limit: string;
  all?: boolean;
};

const HELP = `${ADMIN_HELP}

Examples:
  $ attest audit-log --project prj_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T --after 2026-01-31
  $ attest audit-log --action api_key.revoked --all --json`;

/** `attest audit-log`. */
export function addAuditLog(program: Command, cli: Cli): void {
  addAdminFlags(program.command('audit-log'))
    .option('--project <id>', 'only entries of this project')
    .addOption(new Option('--action <action>', 'only this action').choices(enumNames(AuditActionSchema)))
    .option('--resource <id>', 'only entries of the key, submission or other resource with this ID')
    .option('--after <time>', 'only entries after this time, such as 2026-01-31 or 2026-01-31T12:00:00Z')
    .option('--before <time>', 'only entries before this time')
    .option('--limit <count>', 'maximum number of entries', '50')
    .option('--all', 'all entries, without a limit')
    .addHelpText('after', HELP)
    .action((flags: Flags) => showEntries(cli, flags));
}

async function showEntries(cli: Cli, flags: Flags): Promise<void> {
  const { project: projectId = '', resource: resourceId = '', action } = flags;
  const limit = flags.all ? undefined : parseCount('--limit', flags.limit, 100_000);
  const filters = {
    projectId,
    resourceId,
    ...(action !== undefined && { action: findEnumNumber(AuditActionSchema, action) ?? 0 }),
    ...timeOf('--after', 'after', flags.after),
    ...timeOf('--before', 'before', flags.before),
  };
  await withAdminApi(cli, flags, async (call) => {
    const { listAuditEntries } = AuditService.method;
    const entries = await collectPages((page) => call(listAuditEntries, { ...filters, ...page }), limit);
    if (flags.json) printJsonList(cli, AuditEntrySchema, entries);
    else print(cli, entries.length === 0 ? 'no entries' : entryTable(entries));
  });
}

function timeOf(
  flag: string,
  name: 'after' | 'before',
  text: string | undefined,
): { [K in typeof name]?: Timestamp } {
  if (text === undefined) return {};
  const ms = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms))
    throw new UsageError(`${flag} is not a time such as 2026-01-31 or 2026-01-31T12:00:00Z`);
  return { [name]: timestampFromMs(ms) };
}

function entryTable(entries: readonly AuditEntry[]): string {
  const cells = entries.map(({ at, actor, action, resourceId, detail }) => [
    at === undefined ? '-' : `${timestampDate(at).toISOString().slice(0, 19)}Z`,
    actorText(actor),
    enumName(AuditActionSchema, action),
    resourceId,
    detail === undefined || Object.keys(detail).length === 0 ? '' : printable(JSON.stringify(detail)),
  ]);
  return formatTable([['TIME', 'BY', 'ACTION', 'ON', 'DETAIL'], ...cells]);
}

function actorText(actor: AuditEntry['actor']): string {
  if (actor === undefined) return '-';
  if (actor.person !== undefined) return `${personText(actor.person)} (${actor.id})`;
  return actor.kind === AuditActorKind.ADMIN ? `operator (${actor.id})` : actor.id;
}
