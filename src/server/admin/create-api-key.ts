import {
  type ApiKey,
  type CreateApiKeyRequest,
  type RotateApiKeyRequest,
  RotateApiKeyRequestSchema,
} from '../../../gen/attestation/admin/v1/api_keys_pb.js';
import { AuditAction } from '../../../gen/attestation/admin/v1/audit_pb.js';
import { EnvironmentSchema } from '../../../gen/attestation/v1/environment_pb.js';
import { enumName } from '../../protocol/enum-names.js';
import type { Call } from '../core/call.js';
import type { Principal } from '../core/principal.js';
import type { RandomSource } from '../core/random.js';
import type { Pool, Sql } from '../database/connect.js';
import { type Idempotency, runIdempotently } from '../idempotency/idempotency.js';
import { defaultsOf } from '../json/defaults.js';
import type { Cursors } from '../rpc/cursor.js';
import {
  assertRotatable,
  mergeLimits,
  toEnvironment,
  validateExpiry,
  validateScopes,
} from './api-key-rules.js';
import { recordAction } from './audit-log.js';
import { apiKeyMessage, getApiKey, getApiKeyMessage, getLockedApiKey } from './get-api-key.js';
import { getProject } from './projects.js';
import { assertMayAdd, assertMayGrant, assertMayRotate } from './session-bounds.js';
import { DEFAULT_LIMITS, insertApiKey, type NewApiKey, replaceApiKey } from './store/api-keys.js';

/** A new API key, `secret`, and the columns stored for it. */
export type NewSecret = { secret: string; prefix: string; last4: string; hmac: Uint8Array };

/** Dependencies of the handlers of ApiKeyService. `clock`: Unix milliseconds. */
export type ApiKeyDeps = {
  pool: Pool;
  idempotency: Idempotency;
  cursors: Cursors;
  clock: () => number;
  random: RandomSource;
  /** Every scope that a key can be granted; all keys have the universal one besides. */
  scopes: readonly string[];
  createSecret: (environment: Principal['environment']) => NewSecret;
  /** Called after each change of a key, whether or not the transaction was committed. */
  onKeyChange: (apiKeyId: string) => void;
};

const { overlap: DEFAULT_OVERLAP } = defaultsOf(RotateApiKeyRequestSchema);

/** Creates a key. The response has its secret; a replay has not. */
export async function createApiKey(
  deps: ApiKeyDeps,
  request: CreateApiKeyRequest,
  call: Call,
): Promise<ApiKey> {
  const { pool, clock, scopes } = deps;
  const key = await runIdempotently(deps.idempotency, call, request, {
    effect: async (tx) => {
      const wanted = validateScopes(request.scopes, scopes);
      const expiresAt = request.expiresAt === undefined ? null : validateExpiry(request.expiresAt, clock());
      const limits = mergeLimits(request.limits, DEFAULT_LIMITS);
      assertMayGrant(call, limits);
      const { id: projectId } = await getProject(tx, request.projectId);
      await assertMayAdd(tx, call, projectId, '/project_id');
      return insertKey(deps, tx, call, {
        projectId,
        environment: request.environment,
        name: request.name,
        scopes: request.scopes.length === 0 ? scopes : wanted,
        expiresAt,
        limits,
        createdBy: call.session?.person?.id,
      });
    },
    replay: (id) => getApiKeyMessage(pool, id, clock()),
  });
  deps.onKeyChange(key.id);
  return key;
}

/** Creates a replacement for a key. The old key expires after the overlap. */
export async function rotateApiKey(
  deps: ApiKeyDeps,
  request: RotateApiKeyRequest,
  call: Call,
): Promise<ApiKey> {
  const { pool, clock } = deps;
  try {
    return await runIdempotently(deps.idempotency, call, request, {
      effect: (tx) => replaceKey(deps, tx, call, request),
      replay: (id) => getApiKeyMessage(pool, id, clock()),
    });
  } finally {
    deps.onKeyChange(request.id);
  }
}

async function replaceKey(deps: ApiKeyDeps, tx: Sql, call: Call, request: RotateApiKeyRequest) {
  const nowMs = deps.clock();
  const key = await getLockedApiKey(tx, request.id);
  assertRotatable(key, nowMs);
  assertMayRotate(call, key);
  const overlapMs = overlapOf(request);
  if (overlapMs > 0) await assertMayAdd(tx, call, key.projectId, '/overlap');
  const { projectId, environment, name, scopes } = key;
  const expiresAt =
    request.expiresAt === undefined ? key.expiresAt : validateExpiry(request.expiresAt, nowMs);
  const limits = mergeLimits(undefined, key);
  const createdBy = call.session?.person?.id ?? key.createdBy?.id;
  const wanted = { projectId, environment, name, scopes, expiresAt, limits, createdBy };
  const replacement = await insertKey(deps, tx, call, wanted);
  await replaceApiKey(tx, key.id, { successorId: replacement.resourceId, overlapMs });
  const detail = { successor: replacement.resourceId, overlap_seconds: overlapMs / 1000 };
  const rotated = { action: AuditAction.API_KEY_ROTATED, projectId, resourceId: key.id, detail };
  await recordAction(deps, tx, call, rotated);
  return replacement;
}

function overlapOf({ overlap = DEFAULT_OVERLAP }: RotateApiKeyRequest): number {
  if (overlap === undefined) throw new Error('the proto has no default of overlap');
  return Number(overlap.seconds) * 1000 + Math.round(overlap.nanos / 1e6);
}

type NewKeyColumns = Omit<NewApiKey, 'id' | 'prefix' | 'last4' | 'hmac'>;

async function insertKey(deps: ApiKeyDeps, tx: Sql, call: Call, wanted: NewKeyColumns) {
  const { createSecret, random, clock } = deps;
  const { secret, ...stored } = createSecret(toEnvironment(wanted.environment));
  const resourceId = `key_${random.ulid(clock())}`;
  await insertApiKey(tx, { id: resourceId, ...wanted, ...stored });
  const { projectId, environment, name } = wanted;
  const detail = {
    environment: enumName(EnvironmentSchema, environment),
    name,
    scopes: [...wanted.scopes],
    expires_at: wanted.expiresAt?.toISOString() ?? null,
  };
  await recordAction(deps, tx, call, { action: AuditAction.API_KEY_CREATED, projectId, resourceId, detail });
  return { resourceId, response: apiKeyMessage(await getApiKey(tx, resourceId), clock(), secret) };
}
