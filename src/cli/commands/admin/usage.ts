import { timestampDate } from '@bufbuild/protobuf/wkt';
import { type Command, Option } from 'commander';
import {
  type Usage,
  UsageSchema,
  UsageService,
  UsageWindow,
} from '../../../../gen/attestation/admin/v1/usage_pb.js';
import { type Cli, print, UsageError } from '../../cli.js';
import {
  ADMIN_HELP,
  type AdminFlags,
  addAdminFlags,
  printJson,
  withAdminApi,
} from '../../flags/admin-flags.js';
import { formatTable } from '../../output/table.js';

type Flags = AdminFlags & { project?: string; key?: string; by: 'day' | 'hour' };

const HELP = `${ADMIN_HELP}

Examples:
  $ attest usage --project prj_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T
  $ attest usage --key key_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T --by hour`;

/** `attest usage`. */
export function addUsage(program: Command, cli: Cli): void {
  addAdminFlags(program.command('usage'))
    .option('--project <id>', 'project, with all its keys')
    .option('--key <id>', 'API key')
    .addOption(
      new Option('--by <window>', 'one row per day (last 90 days) or hour (last 8 days)')
        .choices(['day', 'hour'])
        .default('day'),
    )
    .addHelpText('after', HELP)
    .action((flags: Flags) => showUsage(cli, flags));
}

async function showUsage(cli: Cli, flags: Flags): Promise<void> {
  const { project: projectId = '', key: apiKeyId = '', by } = flags;
  if ((projectId === '') === (apiKeyId === '')) throw new UsageError('give either --project or --key');
  const window = by === 'hour' ? UsageWindow.HOUR : UsageWindow.DAY;
  await withAdminApi(cli, flags, async (call) => {
    const usage = await call(UsageService.method.getUsage, { projectId, apiKeyId, window });
    if (flags.json) printJson(cli, UsageSchema, usage);
    else print(cli, usageText(usage, by));
  });
}

function usageText({ data, submissions, reads, ...usage }: Usage, by: Flags['by']): string {
  const started = (time: Date) => time.toISOString().slice(0, by === 'hour' ? 16 : 10);
  const rows = data.map((row) => [
    row.start === undefined ? '' : started(timestampDate(row.start)),
    String(row.submissions),
    String(row.reads),
  ]);
  return formatTable([
    [by === 'hour' ? 'HOUR (UTC)' : 'DAY (UTC)', 'SUBMISSIONS', 'READS'],
    ...rows,
    ['total', String(submissions), String(reads)],
    ['last 24 h', String(usage.submissionsLast24h), String(usage.readsLast24h)],
  ]);
}
