import type { Command } from 'commander';
import {
  DeleteRoleRuleResponseSchema,
  PersonService,
  type RoleRule,
  RoleRuleSchema,
} from '../../../../gen/attestation/admin/v1/people_pb.js';
import type { AdminCall } from '../../../client/admin.js';
import { type Cli, print } from '../../cli.js';
import {
  type AdminFlags,
  collectPages,
  printJson,
  printJsonList,
  withAdminApi,
} from '../../flags/admin-flags.js';
import { addRoleFlags, parseRole } from '../../flags/role-flags.js';
import { parseConditions } from '../../flags/trust-flags.js';
import { roleRuleTable } from '../../output/people/people-text.js';

type ListFlags = AdminFlags & { project?: string };

const { createRoleRule, deleteRoleRule, listRoleRules } = PersonService.method;

/** `attest people rules`. */
export function addRoleRules(command: (name: string) => Command, cli: Cli): void {
  command('list')
    .description('list the rules, newest first')
    .option('--project <id>', 'only rules of this project')
    .action((flags: ListFlags) =>
      withAdminApi(cli, flags, async (call) => {
        const rules = await readRules(call, flags.project);
        if (flags.json) printJsonList(cli, RoleRuleSchema, rules);
        else print(cli, rules.length === 0 ? 'no role rules' : roleRuleTable(rules));
      }),
    );
  addRoleFlags(command('add'))
    .description('give a role to people who meet all conditions when they sign in')
    .argument('<claim=pattern...>', 'conditions on claims; * stands for any characters')
    .action((texts: string[], flags: ListFlags & { role: string }) =>
      withAdminApi(cli, flags, async (call) => {
        const conditions = parseConditions('the condition', texts);
        const of = await parseRole(call, flags.role, flags.project);
        const rule = await call(createRoleRule, { ...of, conditions });
        if (flags.json) printJson(cli, RoleRuleSchema, rule);
        else print(cli, roleRuleTable([rule]));
      }),
    );
  command('remove')
    .description('delete a rule, and the roles that it gave')
    .argument('<id>', 'role rule ID, rol_...')
    .action((id: string, flags: AdminFlags) =>
      withAdminApi(cli, flags, async (call) => {
        const found = (await readRules(call)).find((rule) => rule.id === id);
        const outcome = found && (await call(deleteRoleRule, { id, projectId: found.projectId }));
        if (!outcome?.deleted) throw new Error(`${id}: there is no such role rule`);
        if (flags.json) printJson(cli, DeleteRoleRuleResponseSchema, outcome);
        else print(cli, `${id} is removed, and the roles that it gave`);
      }),
    );
}

function readRules(call: AdminCall, projectId = ''): Promise<RoleRule[]> {
  return collectPages((page) => call(listRoleRules, { projectId, ...page }));
}
