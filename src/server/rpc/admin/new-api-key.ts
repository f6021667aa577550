import type {
  ApiKey,
  CreateApiKeyRequest,
  RotateApiKeyRequest,
} from '../../../../gen/attestation/admin/v1/api_keys_pb.js';
import { AuditAction } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import { EnvironmentSchema } from '../../../../gen/attestation/v1/environment_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import type { Call } from '../../core/call.js';
import type { Sql } from '../../store/database/connect.js';
import {
  DEFAULT_LIMITS,
  insertApiKey,
  type NewApiKey,
  replaceApiKey,
} from '../../store/projects/api-keys.js';
import { insertAuditEntry } from '../../store/projects/audit.js';
import { auditEntry } from '../audit-entry.js';
import { idempotently } from '../idempotency.js';
import type { ApiKeyDeps } from './api-key-deps.js';
import { apiKeyMessage } from './api-key-message.js';
import { assertRotatable, checkExpiry, checkScopes, mergeLimits, toEnvironment } from './api-key-rules.js';
import { getApiKey, getLockedApiKey, showApiKey } from './get-api-key.js';
import { getProject } from './projects.js';

const DEFAULT_OVERLAP_MS = 24 * 3_600_000;

/** Makes a key; its secret is in the answer that made it and in no replay. */
export async function createApiKey(
  deps: ApiKeyDeps,
  request: CreateApiKeyRequest,
  call: Call,
): Promise<ApiKey> {
  const { pool, clock, scopes } = deps;
  const key = await idempotently(deps.idempotency, call, request, {
    effect: async (tx) => {
      const wanted = checkScopes(request.scopes, scopes);
      const expiresAt = request.expiresAt === undefined ? null : checkExpiry(request.expiresAt, clock());
      const { id: projectId } = await getProject(tx, request.projectId);
      return insertNew(deps, tx, call, {
        projectId,
        environment: request.environment,
        name: request.name,
        scopes: request.scopes.length === 0 ? scopes : wanted,
        expiresAt,
        limits: mergeLimits(request.limits, DEFAULT_LIMITS),
      });
    },
    replay: (id) => showApiKey(pool, id, clock()),
  });
  deps.changed(key.id);
  return key;
}

/** Makes a key's successor and bounds the life of the key. */
export async function rotateApiKey(
  deps: ApiKeyDeps,
  request: RotateApiKeyRequest,
  call: Call,
): Promise<ApiKey> {
  const { pool, clock } = deps;
  try {
    return await idempotently(deps.idempotency, call, request, {
      effect: (tx) => replaceKey(deps, tx, call, request),
      replay: (id) => showApiKey(pool, id, clock()),
    });
  } finally {
    deps.changed(request.id);
  }
}

async function replaceKey(deps: ApiKeyDeps, tx: Sql, call: Call, request: RotateApiKeyRequest) {
  const nowMs = deps.clock();
  const key = await getLockedApiKey(tx, request.id);
  assertRotatable(key, nowMs);
  const { projectId, environment, name, scopes } = key;
  const expiresAt = request.expiresAt === undefined ? key.expiresAt : checkExpiry(request.expiresAt, nowMs);
  const limits = mergeLimits(undefined, key);
  const wanted = { projectId, environment, name, scopes, expiresAt, limits };
  const made = await insertNew(deps, tx, call, wanted);
  const overlapMs = overlapOf(request);
  await replaceApiKey(tx, key.id, { successorId: made.resourceId, overlapMs });
  const detail = { successor: made.resourceId, overlap_seconds: overlapMs / 1000 };
  const done = { action: AuditAction.API_KEY_ROTATED, projectId, resourceId: key.id, detail };
  await insertAuditEntry(tx, auditEntry(deps, call, done));
  return made;
}

function overlapOf({ overlap }: RotateApiKeyRequest): number {
  return overlap === undefined
    ? DEFAULT_OVERLAP_MS
    : Number(overlap.seconds) * 1000 + Math.round(overlap.nanos / 1e6);
}

type Wanted = Omit<NewApiKey, 'id' | 'prefix' | 'last4' | 'hmac'>;

async function insertNew(deps: ApiKeyDeps, tx: Sql, call: Call, wanted: Wanted) {
  const { newSecret, random, clock } = deps;
  const { secret, ...stored } = newSecret(toEnvironment(wanted.environment));
  const resourceId = `key_${random.ulid(clock())}`;
  await insertApiKey(tx, { id: resourceId, ...wanted, ...stored });
  const { projectId, environment, name } = wanted;
  const detail = {
    environment: enumName(EnvironmentSchema, environment),
    name,
    scopes: [...wanted.scopes],
    expires_at: wanted.expiresAt?.toISOString() ?? null,
  };
  const done = { action: AuditAction.API_KEY_CREATED, projectId, resourceId, detail };
  await insertAuditEntry(tx, auditEntry(deps, call, done));
  return { resourceId, response: apiKeyMessage(await getApiKey(tx, resourceId), clock(), secret) };
}
