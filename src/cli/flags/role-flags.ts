import { type Command, Option } from 'commander';
import { Role, RoleSchema } from '../../../gen/attestation/options/v1/options_pb.js';
import type { AdminCall } from '../../client/admin.js';
import { enumNames, findEnumNumber } from '../../protocol/enum-names.js';
import { UsageError } from '../cli.js';
import { findOnlyProject } from './only-project.js';

/** Adds the flags that name a role to give, and the project that it is of. */
export function addRoleFlags(command: Command): Command {
  return command
    .addOption(new Option('--role <role>', 'the role').choices(enumNames(RoleSchema)).makeOptionMandatory())
    .option('--project <id>', 'project of the role (default: the only project)');
}

/** A role by its name, and the project that it is of; empty for operators. Throws UsageError. */
export async function parseRole(
  call: AdminCall,
  name: string,
  project: string | undefined,
): Promise<{ role: Role; projectId: string }> {
  const role = findEnumNumber(RoleSchema, name) ?? Role.UNSPECIFIED;
  if (role !== Role.OPERATOR) return { role, projectId: project ?? (await findOnlyProject(call)) };
  if (project !== undefined)
    throw new UsageError('an operator is one of the installation: leave --project out');
  return { role, projectId: '' };
}
