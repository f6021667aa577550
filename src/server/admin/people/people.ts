import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { AuditAction } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import {
  ListPeopleRequestSchema,
  ListPeopleResponseSchema,
  type Member,
  MemberSchema,
  type PersonService,
  type RemoveMemberRequest,
  type RemoveMemberResponse,
  RemoveMemberResponseSchema,
  type SetRoleRequest,
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
import { listUsableKeysOf, revokeApiKey } from '../store/api-keys.js';
import { deleteMember, findMember, listMembers, type MemberRow, setInvitedRole } from '../store/people.js';
import { listRulesOf, removeTrustRule } from '../store/trust-rules.js';
import { type InvitationDeps, invitationHandlers } from './invitations.js';
import { roleRuleHandlers } from './role-rules.js';
import { assertRoleFits, projectOfRole } from './role-scope.js';

/** The dependencies of the handlers of PersonService. */
type PersonDeps = AuditIds &
  InvitationDeps & {
    pool: Pool;
    cursors: Cursors;
    /** Called after an API key or trust rule was revoked, whether or not the transaction was committed. */
    onKeyChange: (id: string) => void;
  };

const readPage = pageReader(ListPeopleRequestSchema);

/** The handlers of PersonService. */
export function personHandlers(deps: PersonDeps): Handlers<typeof PersonService> {
  const { pool, cursors } = deps;
  return {
    ...invitationHandlers(deps),
    ...roleRuleHandlers(deps),
    listPeople: async (request) => {
      const projectId = request.projectId === '' ? undefined : request.projectId;
      const { rows, nextCursor } = await readPage(cursors, request, {
        query: ['people', request.projectId],
        read: async (before, limit) => {
          if (projectId !== undefined) await getProject(pool, projectId);
          return listMembers(pool, { projectId, before, limit });
        },
        positionOf: (row) => [row.person.id, row.projectId ?? ''],
      });
      return create(ListPeopleResponseSchema, { data: rows.map(memberMessage), nextCursor });
    },
    setRole: (request, call) => pool.begin((tx) => setRole(deps, tx, request, call)),
    removeMember: async (request, call) => {
      const removed = await pool.begin((tx) => remove(deps, tx, request, call));
      if (request.revokeCredentials)
        for (const id of [...removed.apiKeyIds, ...removed.trustRuleIds]) deps.onKeyChange(id);
      return removed;
    },
  };
}

async function setRole(
  deps: PersonDeps,
  tx: Sql,
  { projectId, personId, role }: SetRoleRequest,
  call: Call,
): Promise<Member> {
  assertRoleFits(role, projectId);
  const of = await projectOfRole(tx, projectId);
  const before = await findMember(tx, personId, of);
  if (before === undefined) {
    const message = 'names nobody who has a role here; invite him';
    throw invalidRequest([{ path: '/person_id', message }]);
  }
  await setInvitedRole(tx, { personId, projectId: of, role });
  const after = await findMember(tx, personId, of);
  if (after === undefined) throw new Error(`the role of ${personId} is missing`);
  if (after.role !== before.role || after.invitedAs !== before.invitedAs)
    await recordAction(deps, tx, call, {
      action: AuditAction.MEMBER_CHANGED,
      ...(of !== null && { projectId: of }),
      resourceId: personId,
      detail: { role: { from: roleName(before.role), to: roleName(after.role) } },
    });
  return memberMessage(after);
}

/** Takes the role, and revokes what was made with it if that is asked for, also of somebody whose role is gone. */
async function remove(
  deps: PersonDeps,
  tx: Sql,
  { projectId, personId, revokeCredentials }: RemoveMemberRequest,
  call: Call,
): Promise<RemoveMemberResponse> {
  const of = await projectOfRole(tx, projectId);
  const member = await findMember(tx, personId, of);
  if (member !== undefined) {
    await deleteMember(tx, personId, of);
    await recordAction(deps, tx, call, {
      action: AuditAction.MEMBER_REMOVED,
      ...(of !== null && { projectId: of }),
      resourceId: personId,
      detail: { role: roleName(member.role) },
    });
  }
  const apiKeyIds = of === null ? [] : await listUsableKeysOf(tx, personId, of);
  const trustRuleIds = of === null ? [] : await listRulesOf(tx, personId, of);
  if (revokeCredentials && of !== null)
    await revokeAll(deps, tx, call, { projectId: of, apiKeyIds, trustRuleIds });
  const ruleIds = member?.ruleIds ?? [];
  return create(RemoveMemberResponseSchema, {
    removed: member !== undefined,
    ruleIds,
    apiKeyIds,
    trustRuleIds,
  });
}

async function revokeAll(
  deps: PersonDeps,
  tx: Sql,
  call: Call,
  { projectId, apiKeyIds, trustRuleIds }: { projectId: string; apiKeyIds: string[]; trustRuleIds: string[] },
): Promise<void> {
  for (const resourceId of apiKeyIds) {
    const action = AuditAction.API_KEY_REVOKED;
    if (await revokeApiKey(tx, resourceId))
      await recordAction(deps, tx, call, { action, projectId, resourceId });
  }
  for (const resourceId of trustRuleIds) {
    const action = AuditAction.TRUST_RULE_REMOVED;
    if (await removeTrustRule(tx, resourceId))
      await recordAction(deps, tx, call, { action, projectId, resourceId });
  }
}

function roleName(role: number): string {
  return enumName(RoleSchema, role);
}

function memberMessage(row: MemberRow): Member {
  return create(MemberSchema, {
    person: row.person,
    projectId: row.projectId ?? '',
    projectName: row.projectName ?? '',
    role: row.role,
    invitedAs: row.invitedAs ?? 0,
    ruleIds: row.ruleIds,
    signedInAt: timestampFromDate(row.signedInAt),
  });
}
