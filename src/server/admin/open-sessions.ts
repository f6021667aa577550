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
import type { Call, Handlers } from '../core/call.js';
import type { Pool } from '../database/connect.js';
import type { Cursors } from '../rpc/cursor.js';
import { pageReader } from '../rpc/list-page.js';
import { type AuditIds, recordAction } from './audit-log.js';
import { getProject } from './projects.js';
import { deleteSession, deleteSessionsOf, listSessions, type OpenSessionRow } from './store/sessions.js';

/** The dependencies of listing and ending sessions. */
export type OpenSessionDeps = AuditIds & { pool: Pool; cursors: Cursors };

type OpenSessionMethod = 'listSessions' | 'endSession' | 'revokeSessions';

const readPage = pageReader(ListSessionsRequestSchema);

/** The handlers of SessionService by which the operator lists and ends sessions. */
export function openSessionHandlers(
  deps: OpenSessionDeps,
): Pick<Handlers<typeof SessionService>, OpenSessionMethod> {
  const { pool } = deps;
  return {
    listSessions: (request, call) => list(deps, request, call),
    endSession: ({ id }, call) =>
      pool.begin(async (tx) => {
        const ended = await deleteSession(tx, id);
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

async function list(
  { pool, cursors }: OpenSessionDeps,
  request: ListSessionsRequest,
  call: Call,
): Promise<ListSessionsResponse> {
  const { owner } = request;
  const projectId = owner.case === 'operator' ? null : owner.value;
  const { rows, nextCursor } = await readPage(cursors, request, {
    query: ['sessions', owner.case, projectId],
    read: async (before, limit) => {
      if (owner.case === 'projectId') await getProject(pool, owner.value);
      return listSessions(pool, { projectId, before: before?.[0], limit });
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
