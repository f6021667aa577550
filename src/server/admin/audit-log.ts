import type { JsonObject } from '@bufbuild/protobuf';
import { type AuditAction, AuditActorKind } from '../../../gen/attestation/admin/v1/audit_pb.js';
import type { Call } from '../core/call.js';
import { credentialId } from '../core/principal.js';
import type { RandomSource } from '../core/random.js';
import type { Sql } from '../database/connect.js';
import { insertAuditEntry } from './store/audit.js';

/** Where the ids of audit entries come from. `clock`: Unix milliseconds. */
export type AuditIds = { clock: () => number; random: RandomSource };

/** An action to record. `detail` holds no metadata and no secret. */
export type AuditedAction = {
  action: AuditAction;
  /** Default: the project of the calling API key or session, none for the operator. */
  projectId?: string;
  resourceId: string;
  detail?: JsonObject;
};

/** Adds an action to the audit log within its transaction. The actor is the calling session or API key, else the operator. */
export async function recordAction(
  { clock, random }: AuditIds,
  tx: Sql,
  { principal, session, requestId }: Call,
  { action, projectId = principal?.projectId, resourceId, detail = {} }: AuditedAction,
): Promise<void> {
  await insertAuditEntry(tx, {
    id: `aud_${random.ulid(clock())}`,
    projectId: projectId ?? null,
    ...actorOf({ principal, session }),
    action,
    resourceId,
    requestId,
    detail,
  });
}

function actorOf({ principal, session }: Pick<Call, 'principal' | 'session'>) {
  const { SESSION, API_KEY, ADMIN } = AuditActorKind;
  if (session !== undefined) return { actorKind: SESSION, actorId: session.id, actorPerson: session.person };
  return principal === undefined
    ? { actorKind: ADMIN, actorId: 'api' }
    : { actorKind: API_KEY, actorId: credentialId(principal), actorIdentity: principal.identity };
}
