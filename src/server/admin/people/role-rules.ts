import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { AuditAction } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import {
  type CreateRoleRuleRequest,
  DeleteRoleRuleResponseSchema,
  ListRoleRulesRequestSchema,
  ListRoleRulesResponseSchema,
  type PersonService,
  type RoleRule,
  RoleRuleSchema,
} from '../../../../gen/attestation/admin/v1/people_pb.js';
import { RoleSchema } from '../../../../gen/attestation/options/v1/options_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import type { Call, Handlers } from '../../core/call.js';
import type { Pool, Sql } from '../../database/connect.js';
import { invalidRequest } from '../../json/problems.js';
import type { Cursors } from '../../rpc/cursor.js';
import { pageReader } from '../../rpc/list-page.js';
import { type AuditIds, recordAction } from '../audit-log.js';
import { getProject } from '../projects.js';
import { lockProject } from '../store/projects.js';
import {
  countRoleRules,
  deleteRoleRule,
  insertRoleRule,
  listRoleRules,
  type RoleRuleRow,
} from '../store/role-rules.js';
import { CHECKED_CLAIMS, conditionProblems } from '../trust/trust-rule-input.js';
import { assertRoleFits, projectOfRole } from './role-scope.js';

type RoleRuleDeps = AuditIds & { pool: Pool; cursors: Cursors };

type RoleRuleMethod = 'createRoleRule' | 'listRoleRules' | 'deleteRoleRule';

/** Everybody who signs in is compared with all rules. */
const MAX_RULES = 20;

const readPage = pageReader(ListRoleRulesRequestSchema);

/** The handlers of PersonService for role rules. */
export function roleRuleHandlers(deps: RoleRuleDeps): Pick<Handlers<typeof PersonService>, RoleRuleMethod> {
  const { pool, cursors } = deps;
  return {
    createRoleRule: (request, call) => pool.begin((tx) => insertRule(deps, tx, request, call)),
    listRoleRules: async (request) => {
      const projectId = request.projectId === '' ? undefined : request.projectId;
      const { rows, nextCursor } = await readPage(cursors, request, {
        query: ['role rules', request.projectId],
        read: async (before, limit) => {
          if (projectId !== undefined) await getProject(pool, projectId);
          return listRoleRules(pool, { projectId, before: before?.[0], limit });
        },
        positionOf: ({ id }) => [id],
      });
      return create(ListRoleRulesResponseSchema, { data: rows.map(ruleMessage), nextCursor });
    },
    deleteRoleRule: ({ id, projectId }, call) =>
      pool.begin(async (tx) => {
        const of = await projectOfRole(tx, projectId);
        const deleted = await deleteRoleRule(tx, id, of);
        const action = AuditAction.ROLE_RULE_DELETED;
        const owner = of === null ? {} : { projectId: of };
        if (deleted) await recordAction(deps, tx, call, { action, ...owner, resourceId: id });
        return create(DeleteRoleRuleResponseSchema, { deleted });
      }),
  };
}

async function insertRule(
  deps: RoleRuleDeps,
  tx: Sql,
  { projectId, role, conditions }: CreateRoleRuleRequest,
  call: Call,
): Promise<RoleRule> {
  assertRoleFits(role, projectId);
  const problems = conditionProblems(conditions, [...CHECKED_CLAIMS, 'email_verified', 'nonce']);
  if (problems.length > 0) throw invalidRequest(problems);
  const of = await projectOfRole(tx, projectId);
  if (of !== null) await lockProject(tx, of);
  if ((await countRoleRules(tx, of)) >= MAX_RULES) {
    const message = `has ${MAX_RULES} role rules, which is the most; delete one first`;
    throw invalidRequest([{ path: '/project_id', message }]);
  }
  const id = `rol_${deps.random.ulid(deps.clock())}`;
  const createdBy = call.session?.person?.id;
  const row = await insertRoleRule(tx, { id, projectId: of, role, conditions, createdBy });
  await recordAction(deps, tx, call, {
    action: AuditAction.ROLE_RULE_CREATED,
    ...(of !== null && { projectId: of }),
    resourceId: id,
    detail: { role: enumName(RoleSchema, role), conditions },
  });
  return ruleMessage(row);
}

function ruleMessage(row: RoleRuleRow): RoleRule {
  return create(RoleRuleSchema, {
    id: row.id,
    projectId: row.projectId ?? '',
    role: row.role,
    conditions: row.conditions,
    ...(row.createdBy !== null && { createdBy: row.createdBy }),
    createdAt: timestampFromDate(row.createdAt),
  });
}
