import type { JsonObject } from '@bufbuild/protobuf';
import { type AuditAction, AuditActorKind } from '../../../gen/attestation/admin/v1/audit_pb.js';
import type { Call } from '../core/call.js';
import type { RandomSource } from '../core/random.js';
import type { NewAuditEntry } from '../store/projects/audit.js';

/** What ids of entries are made of. `clock`: Unix milliseconds. */
export type AuditIds = { clock: () => number; random: RandomSource };

/** What was done. `detail` holds no metadata and no secret. */
export type Done = {
  action: AuditAction;
  /** Left out: the calling key's project, or none for the operator. */
  projectId?: string;
  resourceId: string;
  detail?: JsonObject;
};

/** The audit entry of what a call does, by the API key that calls, or else the operator. */
export function auditEntry(
  { clock, random }: AuditIds,
  { principal, requestId }: Call,
  { action, projectId = principal?.projectId, resourceId, detail = {} }: Done,
): NewAuditEntry {
  return {
    id: `aud_${random.ulid(clock())}`,
    projectId: projectId ?? null,
    actorKind: principal === undefined ? AuditActorKind.ADMIN : AuditActorKind.API_KEY,
    actorId: principal?.apiKeyId ?? 'api',
    action,
    resourceId,
    requestId,
    detail,
  };
}
