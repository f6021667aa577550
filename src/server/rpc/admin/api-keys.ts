import { create, type JsonObject } from '@bufbuild/protobuf';
import {
  type ApiKey,
  type ApiKeyService,
  type ListApiKeysRequest,
  ListApiKeysRequestSchema,
  type ListApiKeysResponse,
  ListApiKeysResponseSchema,
  type RevokeApiKeyRequest,
  type UpdateApiKeyRequest,
} from '../../../../gen/attestation/admin/v1/api_keys_pb.js';
import { AuditAction } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import type { Call, Handlers } from '../../core/call.js';
import type { Sql } from '../../store/database/connect.js';
import {
  type ApiKeyChange,
  type ApiKeyRow,
  listApiKeys,
  revokeApiKey,
  updateApiKey,
} from '../../store/projects/api-keys.js';
import { insertAuditEntry } from '../../store/projects/audit.js';
import { auditEntry } from '../audit-entry.js';
import { changeOnce } from '../idempotency.js';
import { pageReader } from '../list-page.js';
import { limitsDetail, rightsDetail } from './api-key-changes.js';
import type { ApiKeyDeps } from './api-key-deps.js';
import { apiKeyMessage } from './api-key-message.js';
import { assertNotRevoked, checkExpiry, checkScopes, mergeLimits } from './api-key-rules.js';
import { getLockedApiKey, showApiKey } from './get-api-key.js';
import { createApiKey, rotateApiKey } from './new-api-key.js';
import { getProject } from './projects.js';

const readPage = pageReader(ListApiKeysRequestSchema);

/** The handlers of ApiKeyService. */
export function apiKeyHandlers(deps: ApiKeyDeps): Handlers<typeof ApiKeyService> {
  return {
    createApiKey: (request, call) => createApiKey(deps, request, call),
    getApiKey: ({ id }) => showApiKey(deps.pool, id, deps.clock()),
    listApiKeys: (request) => listKeys(deps, request),
    updateApiKey: (request, call) => update(deps, request, call),
    revokeApiKey: (request, call) => revoke(deps, request, call),
    rotateApiKey: (request, call) => rotateApiKey(deps, request, call),
  };
}

async function listKeys(
  { pool, cursors, clock }: ApiKeyDeps,
  request: ListApiKeysRequest,
): Promise<ListApiKeysResponse> {
  const projectId = request.projectId === '' ? undefined : request.projectId;
  const { rows, nextCursor } = await readPage(cursors, request, {
    query: ['api keys', request.projectId],
    read: async (before, limit) => {
      if (projectId !== undefined) await getProject(pool, projectId);
      return listApiKeys(pool, { projectId, before: before?.[0], limit });
    },
    positionOf: ({ id }) => [id],
  });
  return create(ListApiKeysResponseSchema, {
    data: rows.map((row) => apiKeyMessage(row, clock())),
    nextCursor,
  });
}

function update(deps: ApiKeyDeps, request: UpdateApiKeyRequest, call: Call): Promise<ApiKey> {
  return changeKey(deps, request, call, async (tx, row) => {
    assertNotRevoked(row, deps.clock());
    const to = changeOf(deps, row, request);
    await updateApiKey(tx, row.id, to);
    await note(deps, tx, call, row, AuditAction.API_KEY_CHANGED, rightsDetail(row, to));
    await note(deps, tx, call, row, AuditAction.API_KEY_LIMITS_CHANGED, limitsDetail(row, to));
  });
}

function revoke(deps: ApiKeyDeps, request: RevokeApiKeyRequest, call: Call): Promise<ApiKey> {
  return changeKey(deps, request, call, async (tx, row) => {
    if (await revokeApiKey(tx, row.id)) await note(deps, tx, call, row, AuditAction.API_KEY_REVOKED, {});
  });
}

/** Adds the audit entry of a change, if there is anything to say. */
async function note(
  deps: ApiKeyDeps,
  tx: Sql,
  call: Call,
  { id: resourceId, projectId }: ApiKeyRow,
  action: AuditAction,
  detail: JsonObject | undefined,
): Promise<void> {
  if (detail === undefined) return;
  await insertAuditEntry(tx, auditEntry(deps, call, { action, projectId, resourceId, detail }));
}

async function changeKey(
  { idempotency, clock, changed }: ApiKeyDeps,
  request: UpdateApiKeyRequest | RevokeApiKeyRequest,
  call: Call,
  change: (tx: Sql, row: ApiKeyRow) => Promise<void>,
): Promise<ApiKey> {
  try {
    return await changeOnce(idempotency, call, request, {
      make: async (tx) => {
        const row = await getLockedApiKey(tx, request.id);
        await change(tx, row);
        return row.id;
      },
      show: (sql, id) => showApiKey(sql, id, clock()),
    });
  } finally {
    changed(request.id);
  }
}

/** What the key is to be: what the request says, and the rest as it is. */
function changeOf({ scopes, clock }: ApiKeyDeps, key: ApiKeyRow, request: UpdateApiKeyRequest): ApiKeyChange {
  return {
    name: request.name ?? key.name,
    scopes: request.scopes.length === 0 ? key.scopes : checkScopes(request.scopes, scopes),
    expiresAt: changedExpiry(key, request, clock()),
    ...mergeLimits(request.limits, key),
  };
}

function changedExpiry(key: ApiKeyRow, { expiry }: UpdateApiKeyRequest, nowMs: number): Date | null {
  if (expiry.case === 'expiresAt') return checkExpiry(expiry.value, nowMs);
  return expiry.case === 'neverExpires' ? null : key.expiresAt;
}
