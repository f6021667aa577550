import type { JsonObject } from '@bufbuild/protobuf';
import type { Sql } from '../database/connect.js';

/** An entry of the audit log as stored; `actorKind` and `action` are numbers of the proto enums. */
export type AuditRow = {
  /** `aud_` and a ULID. */
  id: string;
  /** Null when it concerns the whole installation. */
  projectId: string | null;
  at: Date;
  actorKind: number;
  /** The API key's id, or a name. */
  actorId: string;
  action: number;
  resourceId: string;
  requestId: string | null;
  /** No metadata and no secret. */
  detail: JsonObject;
};

/** An entry to be written; the database gives it its time. */
export type NewAuditEntry = Omit<AuditRow, 'at'>;

/** Adds an entry. In the transaction of what it speaks of, both are there or neither. */
export async function insertAuditEntry(tx: Sql, entry: NewAuditEntry): Promise<void> {
  await tx`
    INSERT INTO audit_entry (id, project_id, actor_kind, actor_id, action, resource_id, request_id, detail)
    VALUES (${entry.id}, ${entry.projectId}, ${entry.actorKind}, ${entry.actorId}, ${entry.action},
            ${entry.resourceId}, ${entry.requestId}, ${JSON.stringify(entry.detail)}::text::jsonb)`;
}

/**
 * Drops what of the audit log is older than it is kept, month by month, and makes room for the next months. Entries are
 * kept for `retentionMs` at least, and up to a month longer.
 */
export async function keepAuditPartitions(sql: Sql, retentionMs: number, now: Date): Promise<void> {
  await sql`SELECT keep_audit_partitions(${retentionMs}::bigint, ${now}::timestamptz)`;
}

/** Which entries to list; what is undefined does not bind. Times are exclusive. */
export type AuditQuery = {
  projectId: string | undefined;
  action: number | undefined;
  resourceId: string | undefined;
  after: Date | undefined;
  before: Date | undefined;
  /** Only those below this id: where the page before ended. */
  belowId: string | undefined;
  limit: number;
};

/** The entries that the query asks for, newest first, by id. */
export async function listAuditEntries(sql: Sql, query: AuditQuery): Promise<AuditRow[]> {
  const { projectId, action, resourceId, after, before, belowId } = query;
  const none = sql``;
  return sql<AuditRow[]>`
    SELECT id, project_id AS "projectId", at, actor_kind AS "actorKind", actor_id AS "actorId", action,
           resource_id AS "resourceId", request_id AS "requestId", detail
    FROM audit_entry
    WHERE true
      ${projectId === undefined ? none : sql`AND project_id = ${projectId}`}
      ${action === undefined ? none : sql`AND action = ${action}`}
      ${resourceId === undefined ? none : sql`AND resource_id = ${resourceId}`}
      ${after === undefined ? none : sql`AND at > ${after}`}
      ${before === undefined ? none : sql`AND at < ${before}`}
      ${belowId === undefined ? none : sql`AND id < ${belowId}`}
    ORDER BY id DESC LIMIT ${query.limit}`;
}
