import type { JsonObject } from '@bufbuild/protobuf';
import { ulid } from 'ulid';
import { type AuditAction, AuditActorKind } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import { insertAuditEntry } from '../../admin/store/audit.js';
import type { Sql } from '../../database/connect.js';

/** Adds what the operator does with the archive of a log to the audit log, in its transaction. It concerns all projects. */
export async function recordArchiveAction(
  tx: Sql,
  action: AuditAction.LOG_DROPPED | AuditAction.LOG_IMPORTED,
  origin: string,
  detail: JsonObject,
): Promise<void> {
  await insertAuditEntry(tx, {
    id: `aud_${ulid()}`,
    projectId: null,
    actorKind: AuditActorKind.ADMIN,
    actorId: 'cli',
    action,
    resourceId: origin,
    requestId: null,
    detail,
  });
}
