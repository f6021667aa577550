import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { AuditAction } from '../../../gen/attestation/admin/v1/audit_pb.js';
import {
  EndSessionResponseSchema,
  type ListSessionsRequest,
  ListSessionsRequestSchema,
  type ListSessionsResponse,
  ListSessionsResponseSchema,
  type OpenSession,
  OpenSessionSchema,
  RevokeSessionsResponseSchema,
  type SessionService,
} from '../../../gen/attestation/admin/v1/sessions_pb.js';
import { Role } from '../../../gen/attestation/options/v1/options_pb.js';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import type { Call, Handlers } from '../core/call.js';
import { ApiError } from '../core/errors.js';
import type { Pool } from '../database/connect.js';
import type { Cursors } from '../rpc/cursor.js';
import { pageReader } from '../rpc/list-page.js';
import { type AuditIds, recordAction } from './audit-log.js';
import { getProject } from './projects.js';
import {
  deleteSession,
  deleteSessionsOf,
  listSessions,
  type OpenSessionRow,
  type SessionOwner,
} from './store/sessions.js';

/** The dependencies of listing and ending sessions. */
export type OpenSessionDeps = AuditIds & { pool: Pool; cursors: Cursors };

type OpenSessionMethod = 'listSessions' | 'endSession' | 'revokeSessions';

const readPage = pageReader(ListSessionsRequestSchema);

/** The handlers of SessionService by which sessions are listed and ended. */
export function openSessionHandlers(
  deps: OpenSessionDeps,
): Pick<Handlers<typeof SessionService>, OpenSessionMethod> {
  const { pool } = deps;
  return {
    listSessions: (request, call) => list(deps, request, call),
    endSession: ({ id }, call) =>
      pool.begin(async (tx) => {
        const ended = await deleteSession(tx, id, reachOf(call));
        if (ended !== undefined) {
          const owner = ended.projectId === null ? {} : { projectId: ended.projectId };
          const action = AuditAction.SESSION_REVOKED;
          await recordAction(deps, tx, call, { action, ...owner, resourceId: id });
        }
        return create(EndSessionResponseSchema, { ended: ended !== undefined });
      }),
    revokeSessions: ({ projectId }, call) =>
      pool.begin(async (tx) => {
        if (projectId !== '') await getProject(tx, projectId);
        const ended = await deleteSessionsOf(tx, projectId === '' ? null : projectId);
        const action = AuditAction.SESSIONS_REVOKED;
        const owner = projectId === '' ? {} : { projectId };
        const resourceId = projectId || 'admin';
        await recordAction(deps, tx, call, { action, ...owner, resourceId, detail: ended });
        return create(RevokeSessionsResponseSchema, ended);
      }),
  };
}

/** The sessions that a caller sees and ends: below an administrator of the project his own. */
function reachOf({ session }: Call): SessionOwner {
  if (session?.projectId === undefined) return { kind: 'all' };
  const { projectId, role, person } = session;
  if (role >= Role.ADMIN || person === undefined) return { kind: 'project', projectId };
  return { kind: 'person', personId: person.id };
}

/** Throws `auth.insufficient_scope` for the operators' sessions to anybody else. */
function ownerOf({ owner }: ListSessionsRequest, call: Call): SessionOwner {
  const reach = reachOf(call);
  if (reach.kind !== 'all') {
    if (owner.case !== 'operator') return reach;
    throw new ApiError(ErrorCode.AUTH_INSUFFICIENT_SCOPE, 'only operators see the sessions of operators', {
      required: 'role:operator',
    });
  }
  if (owner.case === 'operator') return { kind: 'operators' };
  return owner.case === undefined ? reach : { kind: 'project', projectId: owner.value };
}

async function list(
  { pool, cursors }: OpenSessionDeps,
  request: ListSessionsRequest,
  call: Call,
): Promise<ListSessionsResponse> {
  const owner = ownerOf(request, call);
  const { rows, nextCursor } = await readPage(cursors, request, {
    query: ['sessions', ...Object.values(owner)],
    read: async (before, limit) => {
      if (owner.kind === 'project') await getProject(pool, owner.projectId);
      return listSessions(pool, { owner, before: before?.[0], limit });
    },
    positionOf: ({ id }) => [id],
  });
  const ownId = call.session?.id;
  return create(ListSessionsResponseSchema, {
    data: rows.map((row) => openSessionMessage(row, ownId)),
    nextCursor,
  });
}

function openSessionMessage(row: OpenSessionRow, ownId: string | undefined): OpenSession {
  return create(OpenSessionSchema, {
    id: row.id,
    projectId: row.projectId ?? '',
    projectName: row.projectName ?? '',
    linkId: row.linkId ?? '',
    createdAt: timestampFromDate(row.createdAt),
    lastUsedAt: timestampFromDate(row.lastUsedAt),
    expiresAt: timestampFromDate(row.expiresAt),
    isOwn: row.id === ownId,
    ...(row.person !== null && { person: row.person }),
  });
}
