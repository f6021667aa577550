import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  AuditAction,
  type AuditEntry,
  AuditEntrySchema,
  type AuditService,
  type ListAuditEntriesRequest,
  ListAuditEntriesRequestSchema,
  type ListAuditEntriesResponse,
  ListAuditEntriesResponseSchema,
} from '../../../gen/attestation/admin/v1/audit_pb.js';
import type { Handlers } from '../core/call.js';
import type { Pool } from '../database/connect.js';
import { dateOfTimestamp } from '../json/well-known-types.js';
import type { Cursors } from '../rpc/cursor.js';
import { pageReader } from '../rpc/list-page.js';
import { type AuditRow, listAuditEntries } from './store/audit.js';

type AuditDeps = { pool: Pool; cursors: Cursors };

const readPage = pageReader(ListAuditEntriesRequestSchema);

/** The handlers of AuditService. */
export function auditHandlers(deps: AuditDeps): Handlers<typeof AuditService> {
  return { listAuditEntries: (request) => listEntries(deps, request) };
}

async function listEntries(
  { pool, cursors }: AuditDeps,
  request: ListAuditEntriesRequest,
): Promise<ListAuditEntriesResponse> {
  const { projectId, action, resourceId } = request;
  const filters = {
    projectId: projectId === '' ? undefined : projectId,
    action: action === AuditAction.UNSPECIFIED ? undefined : action,
    resourceId: resourceId === '' ? undefined : resourceId,
    after: request.after && dateOfTimestamp(request.after),
    before: request.before && dateOfTimestamp(request.before),
  };
  const { rows, nextCursor } = await readPage(cursors, request, {
    query: ['audit', ...Object.values(filters)],
    read: (before, limit) => listAuditEntries(pool, { ...filters, belowId: before?.[0], limit }),
    positionOf: ({ id }) => [id],
  });
  return create(ListAuditEntriesResponseSchema, { data: rows.map(entryMessage), nextCursor });
}

function entryMessage(row: AuditRow): AuditEntry {
  return create(AuditEntrySchema, {
    id: row.id,
    projectId: row.projectId ?? '',
    at: timestampFromDate(row.at),
    actor: {
      kind: row.actorKind,
      id: row.actorId,
      ...(row.actorIdentity !== null && { identity: row.actorIdentity }),
      ...(row.actorPerson !== null && { person: row.actorPerson }),
    },
    action: row.action,
    resourceId: row.resourceId,
    requestId: row.requestId ?? '',
    detail: row.detail,
  });
}
