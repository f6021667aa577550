import { getOption } from '@bufbuild/protobuf';
import { type Command, Option } from 'commander';
import { members as membersOption } from '../../../../gen/attestation/options/v1/options_pb.js';
import {
  DestinationKindSchema,
  type Export,
  ExportCompression,
  ExportSchema,
  ExportStart,
} from '../../../../gen/attestation/v1/exports_pb.js';
import { enumNames, findEnumNumber } from '../../../protocol/enum-names.js';
import { type Cli, print, UsageError } from '../../cli.js';
import { printJson, printJsonList } from '../../flags/admin-flags.js';
import { addClientFlags, CLIENT_HELP, type ClientFlags } from '../../flags/client-flags.js';
import { addDestinationFlags, readDestination } from '../../flags/destination-flags.js';
import { openClient } from '../../flags/open-client.js';
import { confirm } from '../../output/confirm.js';
import { exportTable, exportText } from '../../output/export-text.js';
import { addHelp } from '../../output/help.js';
import { listAllExports } from './all-exports.js';

type ExportFlags = ClientFlags & { json?: boolean };
type CreateFlags = ExportFlags &
  Record<string, string> & { schema?: string; from: string; compression: string };

const ID = ['<id>', 'export ID, exp_...'] as const;
const EXAMPLES = [
  'attest exports create s3 --bucket example-attestations --prefix ci --role-arn arn:aws:iam::123456789012:role/attest',
  'attest exports create gcs --bucket example-attestations --service-account p-01kz...@example.iam.gserviceaccount.com',
  'attest exports create azure_blob --account-url https://example.blob.core.windows.net --container attest --sas-token-file sas.txt',
  'attest exports create git_repo --repository https://git.example.com/team/attestations.git --token-file token.txt',
  'attest exports list',
  'attest exports list --all-projects --failed',
  'attest exports get exp_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T',
  'attest exports test exp_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T',
  'attest exports delete exp_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T',
];

const CREATE_HELP = `${CLIENT_HELP}

Each kind needs a place and credentials that may write there:
  s3          --bucket, and --role-arn or --access-key-id with --secret-access-key-file
  gcs         --bucket, --service-account
  azure_blob  --account-url, --container, --sas-token-file
  git_repo    --repository, and --token-file (https) or --ssh-key-file with --host-key (ssh)

Secrets are read from files, because other users can see the arguments of a process. The service encrypts them and
never returns them. See docs/exports.md for the permissions that each kind needs.`;

/** `attest exports`. */
export function addExports(program: Command, cli: Cli): void {
  const exports = addHelp(program.command('exports'), CLIENT_HELP, EXAMPLES);
  const command = (name: string) =>
    addHelp(addClientFlags(exports.command(name)), CLIENT_HELP, EXAMPLES).option('--json', 'print JSON');
  const create = addHelp(addClientFlags(exports.command('create')), CREATE_HELP, EXAMPLES);
  addCreate(create.option('--json', 'print JSON'), cli);
  command('list')
    .description('list exports, newest first')
    .option('--all-projects', 'those of all projects, by the admin API with ATTEST_ADMIN_TOKEN')
    .option('--failed', 'with --all-projects: only those whose last attempt failed')
    .action(async (flags: ExportFlags & { allProjects?: boolean; failed?: boolean }) => {
      if (flags.allProjects) return listAllExports(cli, flags, { onlyFailed: flags.failed === true });
      if (flags.failed) throw new UsageError('--failed needs --all-projects');
      const all: Export[] = [];
      for await (const one of openClient(cli, flags).exports.list()) all.push(one);
      if (flags.json) printJsonList(cli, ExportSchema, all);
      else print(cli, exportTable(all));
    });
  command('get')
    .description('show one export with its status, lag and recent deliveries')
    .argument(...ID)
    .action(async (id: string, flags: ExportFlags) =>
      printExport(cli, flags, await openClient(cli, flags).exports.get(id)),
    );
  command('test')
    .description('write a probe to the destination; if attempts have failed, the next one follows at once')
    .argument(...ID)
    .action(async (id: string, flags: ExportFlags) =>
      printExport(cli, flags, await openClient(cli, flags).exports.test(id)),
    );
  command('delete')
    .description('stop an export for good and erase its credentials; what was shipped stays')
    .argument(...ID)
    .option('--yes', 'do not ask')
    .action(async (id: string, flags: ExportFlags & { yes?: boolean }) => {
      if (!flags.yes) await confirm(cli, `Stop ${id} for good and erase its credentials?`, '--yes');
      printExport(cli, flags, await openClient(cli, flags).exports.delete({ id }));
    });
}

function addCreate(command: Command, cli: Cli): void {
  const kinds = enumNames(DestinationKindSchema);
  command
    .description('create an export; the service first writes a probe to the destination')
    .argument('<kind>', kinds.join(', '));
  addDestinationFlags(command);
  command
    .option('--schema <name>', 'export only submissions with this metadata schema')
    .addOption(
      new Option('--from <point>', 'first batch to ship: the next one or the oldest')
        .choices(['now', 'beginning'])
        .default('now'),
    )
    .addOption(
      new Option('--compression <kind>', 'compress objects').choices(['none', 'gzip']).default('none'),
    )
    .action(async (kind: string, flags: CreateFlags) => {
      const value = DestinationKindSchema.values.find(
        ({ number }) => number === findEnumNumber(DestinationKindSchema, kind),
      );
      if (value === undefined || !kinds.includes(kind))
        throw new UsageError(`unknown kind ${kind}; the kinds are ${kinds.join(', ')}`);
      const { required, optional } = getOption(value, membersOption) ?? { required: [], optional: [] };
      const destination = await readDestination(flags, { kind, required, optional });
      const made = await openClient(cli, flags).exports.create({
        destination: { kind: value.number, ...destination },
        ...(flags.schema === undefined ? {} : { filter: { schema: flags.schema } }),
        start: flags.from === 'beginning' ? ExportStart.BEGINNING : ExportStart.NOW,
        compression: flags.compression === 'gzip' ? ExportCompression.GZIP : ExportCompression.NONE,
      });
      printExport(cli, flags, made);
    });
}

function printExport(cli: Cli, { json }: ExportFlags, one: Export): void {
  if (json) printJson(cli, ExportSchema, one);
  else print(cli, exportText(one));
}
