import type { KeyObject } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { durationMs, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { AuditAction } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import {
  type CreateInvitationRequest,
  DeleteInvitationResponseSchema,
  type Invitation,
  InvitationSchema,
  ListInvitationsRequestSchema,
  ListInvitationsResponseSchema,
  type PersonService,
} from '../../../../gen/attestation/admin/v1/people_pb.js';
import { RoleSchema } from '../../../../gen/attestation/options/v1/options_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import type { Call, Handlers } from '../../core/call.js';
import type { Pool, Sql } from '../../database/connect.js';
import { hashSessionToken, newSessionToken } from '../../keys/session-token.js';
import type { Cursors } from '../../rpc/cursor.js';
import { pageReader } from '../../rpc/list-page.js';
import { type AuditIds, recordAction } from '../audit-log.js';
import { getProject } from '../projects.js';
import {
  deleteInvitation,
  type InvitationRow,
  insertInvitation,
  listInvitations,
} from '../store/invitations.js';
import { assertRoleFits, projectOfRole } from './role-scope.js';

/** The dependencies of invitations. */
export type InvitationDeps = AuditIds & {
  pool: Pool;
  cursors: Cursors;
  /** Hashes the secrets of invitations. */
  key: KeyObject;
  dashboardUrl: () => string;
};

type InvitationMethod = 'createInvitation' | 'listInvitations' | 'deleteInvitation';

const LIFETIME_MS = 7 * 86_400_000;

const readPage = pageReader(ListInvitationsRequestSchema);

/** The handlers of PersonService for invitations. */
export function invitationHandlers(
  deps: InvitationDeps,
): Pick<Handlers<typeof PersonService>, InvitationMethod> {
  const { pool, cursors } = deps;
  return {
    createInvitation: (request, call) => pool.begin((tx) => invite(deps, tx, request, call)),
    listInvitations: async (request) => {
      const projectId = request.projectId === '' ? undefined : request.projectId;
      const { rows, nextCursor } = await readPage(cursors, request, {
        query: ['invitations', request.projectId],
        read: async (before, limit) => {
          if (projectId !== undefined) await getProject(pool, projectId);
          return listInvitations(pool, { projectId, before: before?.[0], limit });
        },
        positionOf: ({ id }) => [id],
      });
      const data = rows.map((row) => invitationMessage(row));
      return create(ListInvitationsResponseSchema, { data, nextCursor });
    },
    deleteInvitation: ({ id, projectId }, call) =>
      pool.begin(async (tx) => {
        const of = await projectOfRole(tx, projectId);
        const deleted = await deleteInvitation(tx, id, of);
        const action = AuditAction.INVITATION_DELETED;
        const owner = of === null ? {} : { projectId: of };
        if (deleted) await recordAction(deps, tx, call, { action, ...owner, resourceId: id });
        return create(DeleteInvitationResponseSchema, { deleted });
      }),
  };
}

async function invite(
  deps: InvitationDeps,
  tx: Sql,
  { projectId, role, email, lifetime }: CreateInvitationRequest,
  call: Call,
): Promise<Invitation> {
  assertRoleFits(role, projectId);
  const of = await projectOfRole(tx, projectId);
  const token = newSessionToken(deps.random.bytes);
  const row = await insertInvitation(tx, {
    id: `inv_${deps.random.ulid(deps.clock())}`,
    hash: hashSessionToken(deps.key, 'invitation', token),
    projectId: of,
    role,
    email: email === '' ? null : email,
    createdBy: call.session?.person?.id,
    lifetimeMs: lifetime === undefined ? LIFETIME_MS : durationMs(lifetime),
  });
  await recordAction(deps, tx, call, {
    action: AuditAction.INVITATION_CREATED,
    ...(of !== null && { projectId: of }),
    resourceId: row.id,
    detail: { role: enumName(RoleSchema, role), email },
  });
  return invitationMessage(row, `${deps.dashboardUrl()}/dashboard/invitation#${token}`);
}

function invitationMessage(row: InvitationRow, url = ''): Invitation {
  return create(InvitationSchema, {
    id: row.id,
    projectId: row.projectId ?? '',
    role: row.role,
    email: row.email ?? '',
    ...(row.createdBy !== null && { createdBy: row.createdBy }),
    createdAt: timestampFromDate(row.createdAt),
    expiresAt: timestampFromDate(row.expiresAt),
    url,
  });
}
