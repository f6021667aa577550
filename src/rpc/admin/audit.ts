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
import type { Handlers } from '../../call.js';
import { dateOfTimestamp } from '../../json/timestamp.js';
import { type AuditRow, listAuditEntries } from '../../store/audit.js';
import type { Pool } from '../../store/connect.js';
import type { Cursors } from '../cursor.js';
import { defaultLimit } from '../default-limit.js';

/** What the handlers work with. */
export type AuditDeps = { pool: Pool; cursors: Cursors };

const DEFAULT_LIMIT = defaultLimit(ListAuditEntriesRequestSchema);

/** The handlers of AuditService. */
export function auditHandlers(deps: AuditDeps): Handlers<typeof AuditService> {
  return { listAuditEntries: (request) => listEntries(deps, request) };
}

async function listEntries(
  { pool, cursors }: AuditDeps,
  request: ListAuditEntriesRequest,
): Promise<ListAuditEntriesResponse> {
  const { projectId, action, resourceId, limit = DEFAULT_LIMIT } = request;
  const filters = {
    projectId: projectId === '' ? undefined : projectId,
    action: action === AuditAction.UNSPECIFIED ? undefined : action,
    resourceId: resourceId === '' ? undefined : resourceId,
    after: request.after && dateOfTimestamp(request.after),
    before: request.before && dateOfTimestamp(request.before),
  };
  const bound = ['audit', ...Object.values(filters)];
  const [belowId] = cursors.openTexts(request.cursor, bound) ?? [];
  const rows = await listAuditEntries(pool, { ...filters, belowId, limit: limit + 1 });
  const last = rows.length > limit ? rows[limit - 1] : undefined;
  return create(ListAuditEntriesResponseSchema, {
    data: rows.slice(0, limit).map(entryMessage),
    nextCursor: last === undefined ? '' : cursors.seal([last.id], bound),
  });
}

function entryMessage(row: AuditRow): AuditEntry {
  return create(AuditEntrySchema, {
    id: row.id,
    projectId: row.projectId ?? '',
    at: timestampFromDate(row.at),
    actor: { kind: row.actorKind, id: row.actorId },
    action: row.action,
    resourceId: row.resourceId,
    requestId: row.requestId ?? '',
    detail: row.detail,
  });
}
