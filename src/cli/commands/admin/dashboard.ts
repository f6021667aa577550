import { durationFromMs, timestampDate } from '@bufbuild/protobuf/wkt';
import type { Command } from 'commander';
import {
  RevokeSessionsResponseSchema,
  SessionService,
  SignInLinkSchema,
} from '../../../../gen/attestation/admin/v1/sessions_pb.js';
import { type Cli, print, printError } from '../../cli.js';
import {
  ADMIN_HELP,
  type AdminFlags,
  addAdminFlags,
  printJson,
  withAdminApi,
} from '../../flags/admin-flags.js';
import { parseDuration } from '../../flags/flag-values.js';
import { addHelp } from '../../output/help.js';

const HELP = `
The operator signs in at /dashboard with the admin token. A link signs somebody else in to one project, once; the
session ends after 12 hours, after an hour without use, or by \`attest dashboard revoke\`. The first to open the link
is signed in, so send it as you would send a password.
${ADMIN_HELP}`;

const EXAMPLES = [
  'attest dashboard link prj_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T',
  'attest dashboard link prj_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T --lifetime 4h',
  'attest dashboard revoke --project prj_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T',
];

const { createSignInLink, revokeSessions } = SessionService.method;

/** `attest dashboard`. */
export function addDashboard(program: Command, cli: Cli): void {
  const dashboard = addHelp(program.command('dashboard'), HELP, EXAMPLES);
  dashboard.description('make sign-in links to the dashboard, and end its sessions');
  const command = (name: string) => addHelp(addAdminFlags(dashboard.command(name)), HELP, EXAMPLES);
  command('link')
    .description('make a link that signs in to one project, once; it is shown only once')
    .argument('<project>', 'project ID, prj_...')
    .option('--lifetime <duration>', 'how long the link works, 1m to 24h', '15m')
    .action((projectId: string, flags: AdminFlags & { lifetime: string }) =>
      withAdminApi(cli, flags, async (call) => {
        const lifetime = durationFromMs(parseDuration('--lifetime', flags.lifetime, '1m', '24h'));
        const link = await call(createSignInLink, { projectId, lifetime });
        if (flags.json) return printJson(cli, SignInLinkSchema, link);
        const until = link.expiresAt === undefined ? '' : timestampDate(link.expiresAt).toISOString();
        printError(cli, `${link.id}: works once, until ${until}`);
        print(cli, link.url);
      }),
    );
  command('revoke')
    .description("end a project's sessions and unused links, or the operator's sessions")
    .option('--project <id>', "the project (default: the operator's own sessions)")
    .action((flags: AdminFlags & { project?: string }) =>
      withAdminApi(cli, flags, async (call) => {
        const ended = await call(revokeSessions, { projectId: flags.project ?? '' });
        if (flags.json) return printJson(cli, RevokeSessionsResponseSchema, ended);
        print(cli, `${ended.sessions} sessions and ${ended.links} unused links were ended`);
      }),
    );
}
