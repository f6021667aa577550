import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { Argument, type Command, Option } from 'commander';
import {
  DeleteInvitationResponseSchema,
  type Invitation,
  InvitationSchema,
  MemberSchema,
  PersonService,
  RemoveMemberResponseSchema,
} from '../../../../gen/attestation/admin/v1/people_pb.js';
import { RoleSchema } from '../../../../gen/attestation/options/v1/options_pb.js';
import type { AdminCall } from '../../../client/admin.js';
import { enumNames } from '../../../protocol/enum-names.js';
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
import { findOnlyProject } from '../../flags/only-project.js';
import { addRoleFlags, parseRole } from '../../flags/role-flags.js';
import { addHelp } from '../../output/help.js';
import { invitationTable, memberTable, memberText, removedText } from '../../output/people/people-text.js';
import { timeText } from '../../output/time-text.js';
import { addRoleRules } from './role-rules.js';

const HELP = `
People sign in to the dashboard at the identity provider of the service. Their roles come by invitations and role rules; that
of an operator is of the installation, the others are of a project. Send an invitation as you would send a password.
${ADMIN_HELP}`;

const EXAMPLES = [
  'attest people list --project prj_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T',
  'attest people invite --email ada@example.com --role member',
  'attest people invite --role operator --lifetime 1h',
  'attest people role per_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T admin',
  'attest people remove per_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T --revoke-credentials',
  'attest people invitations',
  'attest people uninvite inv_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T',
  'attest people rules list',
  "attest people rules add --role viewer 'email=*@example.com'",
  'attest people rules remove rol_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T',
];

/** Flags that name a project. */
type ProjectFlags = AdminFlags & { project?: string };
type InviteFlags = ProjectFlags & { role: string; email?: string; lifetime: string };
type RemoveFlags = ProjectFlags & { operator?: boolean; revokeCredentials?: boolean };

const { createInvitation, deleteInvitation, listInvitations, listPeople, removeMember, setRole } =
  PersonService.method;

/** `attest people`. */
export function addPeople(program: Command, cli: Cli): void {
  const people = addHelp(program.command('people'), HELP, EXAMPLES);
  const command = (name: string) => addHelp(addAdminFlags(people.command(name)), HELP, EXAMPLES);
  command('list')
    .description('list the people and their roles')
    .option('--project <id>', 'only those with a role in this project')
    .action((flags: ProjectFlags) =>
      withAdminApi(cli, flags, async (call) => {
        const projectId = flags.project ?? '';
        const members = await collectPages((page) => call(listPeople, { projectId, ...page }));
        if (flags.json) printJsonList(cli, MemberSchema, members);
        else print(cli, members.length === 0 ? 'no people' : memberTable(members));
      }),
    );
  addMemberCommands(command, cli);
  addInvitationCommands(command, cli);
  const rules = addHelp(people.command('rules'), HELP, EXAMPLES);
  rules.description('list, add and remove rules that give roles when people sign in');
  addRoleRules((name) => addHelp(addAdminFlags(rules.command(name)), HELP, EXAMPLES), cli);
}

function addMemberCommands(command: (name: string) => Command, cli: Cli): void {
  command('role')
    .description('give somebody who has a role another one; a higher one by a rule stays')
    .argument('<person>', 'person ID, per_...')
    .addArgument(new Argument('<role>', 'the role').choices(enumNames(RoleSchema)))
    .option('--project <id>', 'project of the role (default: the only project)')
    .action((personId: string, name: string, flags: ProjectFlags) =>
      withAdminApi(cli, flags, async (call) => {
        const member = await call(setRole, { personId, ...(await parseRole(call, name, flags.project)) });
        if (flags.json) printJson(cli, MemberSchema, member);
        else print(cli, memberText(member));
      }),
    );
  command('remove')
    .description("take somebody's role, and say what stays of it")
    .argument('<person>', 'person ID, per_...')
    .option('--project <id>', 'project of the role (default: the only project)')
    .addOption(new Option('--operator', 'take the role of an operator').conflicts('project'))
    .option('--revoke-credentials', 'revoke the API keys and trust rules that the person has made there')
    .action((personId: string, flags: RemoveFlags) =>
      withAdminApi(cli, flags, (call) => remove(cli, call, personId, flags)),
    );
}

function addInvitationCommands(command: (name: string) => Command, cli: Cli): void {
  addRoleFlags(command('invite'))
    .description('make a link that gives a role, once; it is shown only once')
    .option('--email <address>', 'who may accept it (default: whoever has the link first)')
    .option('--lifetime <duration>', 'how long the link works, 1m to 30d', '7d')
    .action((flags: InviteFlags) => withAdminApi(cli, flags, (call) => invite(cli, call, flags)));
  command('invitations')
    .description('list the invitations that nobody has accepted, newest first')
    .option('--project <id>', 'only those of this project')
    .action((flags: ProjectFlags) =>
      withAdminApi(cli, flags, async (call) => {
        const invitations = await readInvitations(call, flags.project);
        if (flags.json) printJsonList(cli, InvitationSchema, invitations);
        else print(cli, invitations.length === 0 ? 'no invitations' : invitationTable(invitations));
      }),
    );
  command('uninvite')
    .description('take an invitation back')
    .argument('<id>', 'invitation ID, inv_...')
    .action((id: string, flags: AdminFlags) =>
      withAdminApi(cli, flags, async (call) => {
        const found = (await readInvitations(call)).find((invitation) => invitation.id === id);
        const outcome = found && (await call(deleteInvitation, { id, projectId: found.projectId }));
        if (!outcome?.deleted)
          throw new Error(`${id}: there is no such invitation, or it was accepted or has expired`);
        if (flags.json) printJson(cli, DeleteInvitationResponseSchema, outcome);
        else print(cli, `${id} is taken back`);
      }),
    );
}

async function invite(cli: Cli, call: AdminCall, flags: InviteFlags): Promise<void> {
  const lifetime = durationFromMs(parseDuration('--lifetime', flags.lifetime, '1m', '30d'));
  const of = await parseRole(call, flags.role, flags.project);
  const invitation = await call(createInvitation, { ...of, email: flags.email ?? '', lifetime });
  if (flags.json) return printJson(cli, InvitationSchema, invitation);
  printError(cli, `${invitation.id}: works once, until ${timeText(invitation.expiresAt)}`);
  print(cli, invitation.url);
}

async function remove(cli: Cli, call: AdminCall, personId: string, flags: RemoveFlags): Promise<void> {
  const projectId = flags.operator ? '' : (flags.project ?? (await findOnlyProject(call)));
  const { revokeCredentials = false } = flags;
  const outcome = await call(removeMember, { projectId, personId, revokeCredentials });
  const { removed, apiKeyIds, trustRuleIds } = outcome;
  if (!removed && apiKeyIds.length + trustRuleIds.length === 0) {
    const where = projectId === '' ? 'is no operator' : `has no role in ${projectId}`;
    throw new Error(`${personId} ${where}: \`attest people list\` shows who has which`);
  }
  if (flags.json) printJson(cli, RemoveMemberResponseSchema, outcome);
  else print(cli, removedText(personId, outcome, revokeCredentials));
}

function readInvitations(call: AdminCall, projectId = ''): Promise<Invitation[]> {
  return collectPages((page) => call(listInvitations, { projectId, ...page }));
}
