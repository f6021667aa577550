import type { JsonObject } from '@bufbuild/protobuf';
import { ulid } from 'ulid';
import { type AuditAction, AuditActorKind } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import type { Identity } from '../../../protocol/identity.js';
import type { Sql } from '../../database/connect.js';
import type { PersonRow } from './people.js';

/** A stored entry of the audit log; `actorKind` and `action` are numbers of the proto enums. */
export type AuditRow = {
  /** `aud_` and a ULID. */
  id: string;
  /** Null if the entry concerns the whole installation. */
  projectId: string | null;
  at: Date;
  actorKind: number;
  /** The API key's id, or a name. */
  actorId: string;
  /** Who held the API key, if it was exchanged for a token. */
  actorIdentity: Identity | null;
  /** Who was signed in, as he was named then. */
  actorPerson: PersonRow | null;
  action: number;
  resourceId: string;
  requestId: string | null;
  /** No metadata and no secret. */
  detail: JsonObject;
};

/** An entry to insert; the database sets its time. */
export type NewAuditEntry = Omit<AuditRow, 'at' | 'actorIdentity' | 'actorPerson'> & {
  actorIdentity?: Identity | undefined;
  actorPerson?: PersonRow | undefined;
};

/** Inserts an entry. Call it in the transaction that makes the change. */
export async function insertAuditEntry(tx: Sql, entry: NewAuditEntry): Promise<void> {
  await tx`
    INSERT INTO audit_entry (id, project_id, actor_kind, actor_id, action, resource_id, request_id, detail,
                             actor_identity, actor_person)
    VALUES (${entry.id}, ${entry.projectId}, ${entry.actorKind}, ${entry.actorId}, ${entry.action},
            ${entry.resourceId}, ${entry.requestId}, ${JSON.stringify(entry.detail)}::text::jsonb,
            ${jsonOf(entry.actorIdentity)}::text::jsonb, ${jsonOf(entry.actorPerson)}::text::jsonb)`;
}

/** Inserts the entry of an operator's command that concerns the whole installation. Call it in the command's transaction. */
export async function insertOperatorEntry(
  tx: Sql,
  action: AuditAction,
  resourceId: string,
  detail: JsonObject,
): Promise<void> {
  await insertAuditEntry(tx, {
    id: `aud_${ulid()}`,
    projectId: null,
    actorKind: AuditActorKind.ADMIN,
    actorId: 'cli',
    action,
    resourceId,
    requestId: null,
    detail,
  });
}

function jsonOf(value: object | undefined): string | null {
  return value === undefined ? null : JSON.stringify(value);
}

/**
 * Drops expired months of the audit log and adds partitions for the next ones. Entries are kept for at least
 * `retentionMs`, and up to a month longer.
 */
export async function keepAuditPartitions(sql: Sql, retentionMs: number, now: Date): Promise<void> {
  await sql`SELECT keep_audit_partitions(${retentionMs}::bigint, ${now}::timestamptz)`;
}

/** A query of entries; an undefined member matches all. Times are exclusive. */
export type AuditQuery = {
  projectId: string | undefined;
  action: number | undefined;
  resourceId: string | undefined;
  after: Date | undefined;
  before: Date | undefined;
  /** Only entries below this id, the end of the previous page. */
  belowId: string | undefined;
  limit: number;
};

/** Lists entries, newest first, by id. */
export async function listAuditEntries(sql: Sql, query: AuditQuery): Promise<AuditRow[]> {
  const { projectId, action, resourceId, after, before, belowId } = query;
  const none = sql``;
  return sql<AuditRow[]>`
    SELECT id, project_id AS "projectId", at, actor_kind AS "actorKind", actor_id AS "actorId", action,
           actor_identity AS "actorIdentity", actor_person AS "actorPerson", resource_id AS "resourceId", request_id AS "requestId", detail
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
