import { durationFromMs, timestampDate } from '@bufbuild/protobuf/wkt';
import { type Command, Option } from 'commander';
import {
  EndSessionResponseSchema,
  type OpenSession,
  OpenSessionSchema,
  RevokeSessionsResponseSchema,
  SessionService,
  SignInLinkSchema,
} from '../../../../gen/attestation/admin/v1/sessions_pb.js';
import { count } from '../../../proof/export/object-check.js';
import { type Cli, print, printError } from '../../cli.js';
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
import { addHelp } from '../../output/help.js';
import { personText } from '../../output/people/person-text.js';
import { formatTable } from '../../output/table.js';

const HELP = `
The operator signs in at /dashboard with the admin token. A link signs somebody else in to one project, once; the
session ends after 12 hours, after an hour without use, or by \`attest dashboard end\` and \`revoke\`. The first to open
the link is signed in, so send it as you would send a password.
${ADMIN_HELP}`;

const EXAMPLES = [
  'attest dashboard link prj_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T',
  'attest dashboard link prj_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T --lifetime 4h',
  'attest dashboard sessions --project prj_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T',
  'attest dashboard end ses_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T',
  'attest dashboard revoke --project prj_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T',
];

const { createSignInLink, listSessions, endSession, revokeSessions } = SessionService.method;

type ListFlags = AdminFlags & { project?: string; operator?: boolean };

/** `attest dashboard`. */
export function addDashboard(program: Command, cli: Cli): void {
  const dashboard = addHelp(program.command('dashboard'), HELP, EXAMPLES);
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
  addSessionCommands(command, cli);
  command('revoke')
    .description("end a project's sessions and unused links, or the operator's sessions")
    .option('--project <id>', "the project (default: the operator's own sessions)")
    .action((flags: AdminFlags & { project?: string }) =>
      withAdminApi(cli, flags, async (call) => {
        const ended = await call(revokeSessions, { projectId: flags.project ?? '' });
        if (flags.json) return printJson(cli, RevokeSessionsResponseSchema, ended);
        print(cli, `${count(ended.sessions, 'session')} and ${count(ended.links, 'unused link')} were ended`);
      }),
    );
}

function addSessionCommands(command: (name: string) => Command, cli: Cli): void {
  command('sessions')
    .description('list the sessions that have not ended, newest first')
    .option('--project <id>', 'only those of this project')
    .addOption(new Option('--operator', "only the operator's own").conflicts('project'))
    .action((flags: ListFlags) =>
      withAdminApi(cli, flags, async (call) => {
        const owner = ownerOf(flags);
        const sessions = await collectPages((page) => call(listSessions, { ...page, owner }));
        if (flags.json) printJsonList(cli, OpenSessionSchema, sessions);
        else print(cli, sessions.length === 0 ? 'no sessions' : sessionTable(sessions));
      }),
    );
  command('end')
    .description('end one session')
    .argument('<session>', 'session ID, ses_...')
    .action((id: string, flags: AdminFlags) =>
      withAdminApi(cli, flags, async (call) => {
        const outcome = await call(endSession, { id });
        if (!outcome.ended) throw new Error(`${id}: there is no such session, or it has ended`);
        if (flags.json) printJson(cli, EndSessionResponseSchema, outcome);
        else print(cli, `${id} was ended`);
      }),
    );
}

function ownerOf({ project, operator }: ListFlags) {
  if (project !== undefined) return { case: 'projectId' as const, value: project };
  return operator ? { case: 'operator' as const, value: true } : { case: undefined };
}

function sessionTable(sessions: readonly OpenSession[]): string {
  const hasPeople = sessions.some(({ person }) => person !== undefined);
  const cells = sessions.map(({ id, projectId, linkId, person, createdAt, lastUsedAt, expiresAt }) => [
    id,
    projectId || (person === undefined ? 'operator' : '-'),
    linkId || '-',
    ...[createdAt, lastUsedAt, expiresAt].map((at) =>
      at === undefined ? '-' : `${timestampDate(at).toISOString().slice(0, 16)}Z`,
    ),
    ...(hasPeople ? [personText(person)] : []),
  ]);
  return formatTable([
    ['ID', 'PROJECT', 'LINK', 'STARTED', 'LAST USE', 'ENDS', ...(hasPeople ? ['PERSON'] : [])],
    ...cells,
  ]);
}
