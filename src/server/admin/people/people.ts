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
import { deleteMember, findMember, listMembers, type MemberRow, setInvitedRole } from '../store/people.js';
import { type InvitationDeps, invitationHandlers } from './invitations.js';
import { roleRuleHandlers } from './role-rules.js';
import { assertRoleFits, projectOfRole } from './role-scope.js';

/** The dependencies of the handlers of PersonService. */
type PersonDeps = AuditIds & InvitationDeps & { pool: Pool; cursors: Cursors };

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
    removeMember: (request, call) => pool.begin((tx) => remove(deps, tx, request, call)),
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

async function remove(
  deps: PersonDeps,
  tx: Sql,
  { projectId, personId }: RemoveMemberRequest,
  call: Call,
): Promise<RemoveMemberResponse> {
  const of = await projectOfRole(tx, projectId);
  const member = await findMember(tx, personId, of);
  if (member === undefined) return create(RemoveMemberResponseSchema);
  await deleteMember(tx, personId, of);
  await recordAction(deps, tx, call, {
    action: AuditAction.MEMBER_REMOVED,
    ...(of !== null && { projectId: of }),
    resourceId: personId,
    detail: { role: roleName(member.role) },
  });
  return create(RemoveMemberResponseSchema, { removed: true, ruleIds: member.ruleIds });
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
