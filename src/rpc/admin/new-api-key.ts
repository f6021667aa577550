import type {
  ApiKey,
  CreateApiKeyRequest,
  RotateApiKeyRequest,
} from '../../../gen/attestation/admin/v1/api_keys_pb.js';
import type { Call } from '../../call.js';
import { DEFAULT_LIMITS, insertApiKey, type NewApiKey, replaceApiKey } from '../../store/api-keys.js';
import type { Sql } from '../../store/connect.js';
import { idempotently } from '../idempotent.js';
import type { ApiKeyDeps } from './api-key-deps.js';
import { apiKeyMessage } from './api-key-message.js';
import { assertRotatable, checkExpiry, checkScopes, mergeLimits, toEnvironment } from './api-key-rules.js';
import { getApiKey, getLockedApiKey, showApiKey } from './get-api-key.js';
import { getProject } from './projects.js';

const DEFAULT_OVERLAP_MS = 24 * 3_600_000;

/** Makes a key; its secret is in the answer that made it and in no replay. */
export function createApiKey(deps: ApiKeyDeps, request: CreateApiKeyRequest, call: Call): Promise<ApiKey> {
  const { pool, clock, scopes } = deps;
  return idempotently(deps.idempotency, call, request, {
    effect: async (tx) => {
      const wanted = checkScopes(request.scopes, scopes);
      const expiresAt = request.expiresAt === undefined ? null : checkExpiry(request.expiresAt, clock());
      const { id: projectId } = await getProject(tx, request.projectId);
      return insertNew(deps, tx, {
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
}

/** Makes a key's successor and bounds the life of the key. */
export async function rotateApiKey(
  deps: ApiKeyDeps,
  request: RotateApiKeyRequest,
  call: Call,
): Promise<ApiKey> {
  const { pool, clock } = deps;
  const successor = await idempotently(deps.idempotency, call, request, {
    effect: async (tx) => {
      const key = await getLockedApiKey(tx, request.id);
      assertRotatable(key, clock());
      const { projectId, environment, name, scopes } = key;
      const expiresAt =
        request.expiresAt === undefined ? key.expiresAt : checkExpiry(request.expiresAt, clock());
      const limits = mergeLimits(undefined, key);
      const made = await insertNew(deps, tx, { projectId, environment, name, scopes, expiresAt, limits });
      await replaceApiKey(tx, key.id, { successorId: made.resourceId, overlapMs: overlapOf(request) });
      return made;
    },
    replay: (id) => showApiKey(pool, id, clock()),
  });
  deps.changed(request.id);
  return successor;
}

function overlapOf({ overlap }: RotateApiKeyRequest): number {
  return overlap === undefined
    ? DEFAULT_OVERLAP_MS
    : Number(overlap.seconds) * 1000 + Math.round(overlap.nanos / 1e6);
}

type Wanted = Omit<NewApiKey, 'id' | 'prefix' | 'last4' | 'hmac'>;

async function insertNew({ newSecret, random, clock }: ApiKeyDeps, tx: Sql, wanted: Wanted) {
  const { secret, ...stored } = newSecret(toEnvironment(wanted.environment));
  const resourceId = `key_${random.ulid(clock())}`;
  await insertApiKey(tx, { id: resourceId, ...wanted, ...stored });
  return { resourceId, response: apiKeyMessage(await getApiKey(tx, resourceId), clock(), secret) };
}
