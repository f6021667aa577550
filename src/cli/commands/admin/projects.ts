import { timestampDate } from '@bufbuild/protobuf/wkt';
import { type Command, Option } from 'commander';
import {
  type Project,
  ProjectSchema,
  ProjectService,
  PublicLookupSchema,
} from '../../../../gen/attestation/admin/v1/projects_pb.js';
import { enumNames, findEnumNumber } from '../../../protocol/enum-names.js';
import { printable } from '../../../protocol/printable.js';
import { type Cli, print, UsageError } from '../../cli.js';
import {
  ADMIN_HELP,
  type AdminFlags,
  addAdminFlags,
  collectPages,
  printJson,
  printJsonList,
  withAdminApi,
} from '../../flags/admin-flags.js';
import { addProjectLimitFlags, type LimitFlags, limitFields } from '../../flags/key-flags.js';
import { addHelp } from '../../output/help.js';
import { formatTable } from '../../output/table.js';

const EXAMPLES = [
  'attest projects create "Model evaluations"',
  'attest projects list',
  'attest projects get prj_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T',
  'attest projects update prj_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T --name "Evaluations"',
  'attest projects update prj_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T --public-lookup on',
  'attest projects update prj_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T --submissions-per-second 1000',
];

const { createProject, getProject, listProjects, updateProject } = ProjectService.method;

/** `attest projects`. */
export function addProjects(program: Command, cli: Cli): void {
  const projects = addHelp(program.command('projects'), ADMIN_HELP, EXAMPLES);
  const command = (name: string) => addHelp(addAdminFlags(projects.command(name)), ADMIN_HELP, EXAMPLES);
  command('create')
    .description('create a project')
    .argument('<name>', 'display name')
    .action((name: string, flags: AdminFlags) =>
      withAdminApi(cli, flags, async (call) => show(cli, flags, await call(createProject, { name }))),
    );
  command('list')
    .description('list projects, newest first')
    .action((flags: AdminFlags) =>
      withAdminApi(cli, flags, async (call) => {
        list(cli, flags, await collectPages((page) => call(listProjects, page)));
      }),
    );
  command('get')
    .description('show one project')
    .argument('<id>', 'project ID, prj_...')
    .action((id: string, flags: AdminFlags) =>
      withAdminApi(cli, flags, async (call) => show(cli, flags, await call(getProject, { id }))),
    );
  addProjectLimitFlags(command('update'))
    .description('rename a project, or change its settings and limits')
    .argument('<id>', 'project ID, prj_...')
    .option('--name <name>', 'new display name')
    .addOption(
      new Option(
        '--public-lookup <setting>',
        'whether strangers find its bundles by a file; default: as PUBLIC_LOOKUP says',
      ).choices(enumNames(PublicLookupSchema)),
    )
    .action((id: string, flags: UpdateFlags) => update(cli, id, flags));
}

type UpdateFlags = AdminFlags &
  LimitFlags & { name?: string; publicLookup?: string; defaultLimits?: boolean };

async function update(cli: Cli, id: string, flags: UpdateFlags): Promise<void> {
  const { name, publicLookup, defaultLimits = false } = flags;
  const limits = limitFields(flags);
  const hasLimits = defaultLimits || Object.keys(limits).length > 0;
  if (name === undefined && publicLookup === undefined && !hasLimits) {
    throw new UsageError('nothing to change: give --name, --public-lookup or a limit');
  }
  const request = {
    id,
    limits,
    defaultLimits,
    ...(name !== undefined && { name }),
    ...(publicLookup !== undefined && { publicLookup: findEnumNumber(PublicLookupSchema, publicLookup) }),
  };
  await withAdminApi(cli, flags, async (call) => show(cli, flags, await call(updateProject, request)));
}

function show(cli: Cli, { json }: AdminFlags, project: Project): void {
  if (json) printJson(cli, ProjectSchema, project);
  else print(cli, `${project.id}  ${printable(project.name)}`);
}

function list(cli: Cli, { json }: AdminFlags, projects: readonly Project[]): void {
  if (json) {
    printJsonList(cli, ProjectSchema, projects);
    return;
  }
  const cells = projects.map(({ id, name, createdAt }) => [
    id,
    createdAt === undefined ? '-' : timestampDate(createdAt).toISOString().slice(0, 10),
    printable(name),
  ]);
  print(cli, projects.length === 0 ? 'no projects' : formatTable([['ID', 'CREATED', 'NAME'], ...cells]));
}
