import { create, type JsonObject, type JsonValue } from '@bufbuild/protobuf';
import {
  type ApiKey,
  type ApiKeyService,
  type ListApiKeysRequest,
  ListApiKeysRequestSchema,
  type ListApiKeysResponse,
  ListApiKeysResponseSchema,
  type RevokeApiKeyRequest,
  type UpdateApiKeyRequest,
} from '../../../gen/attestation/admin/v1/api_keys_pb.js';
import { AuditAction } from '../../../gen/attestation/admin/v1/audit_pb.js';
import type { Call, Handlers } from '../core/call.js';
import type { Sql } from '../database/connect.js';
import { changeOnce } from '../idempotency/idempotency.js';
import { pageReader } from '../rpc/list-page.js';
import { assertNotRevoked, mergeLimits, validateExpiry, validateScopes } from './api-key-rules.js';
import { recordAction } from './audit-log.js';
import { type ApiKeyDeps, createApiKey, rotateApiKey } from './create-api-key.js';
import { apiKeyMessage, getApiKeyMessage, getLockedApiKey } from './get-api-key.js';
import { getProject } from './projects.js';
import { assertMayAdd, assertMayChange } from './session-bounds.js';
import {
  type ApiKeyChange,
  type ApiKeyLimits,
  type ApiKeyRow,
  listApiKeys,
  revokeApiKey,
  updateApiKey,
} from './store/api-keys.js';

const readPage = pageReader(ListApiKeysRequestSchema);

/** The handlers of ApiKeyService. */
export function apiKeyHandlers(deps: ApiKeyDeps): Handlers<typeof ApiKeyService> {
  return {
    createApiKey: (request, call) => createApiKey(deps, request, call),
    getApiKey: ({ id }) => getApiKeyMessage(deps.pool, id, deps.clock()),
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
  const createdBy = request.createdBy === '' ? undefined : request.createdBy;
  const { rows, nextCursor } = await readPage(cursors, request, {
    query: ['api keys', request.projectId, ...(createdBy === undefined ? [] : [createdBy])],
    read: async (before, limit) => {
      if (projectId !== undefined) await getProject(pool, projectId);
      return listApiKeys(pool, { projectId, createdBy, before: before?.[0], limit });
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
    const to = updatedColumns(deps, row, request);
    assertMayChange(call, row, to);
    if (isRevived(deps, row, to)) await assertMayAdd(tx, call, row.projectId, '/expires_at');
    await updateApiKey(tx, row.id, to);
    await recordChange(deps, tx, call, row, AuditAction.API_KEY_CHANGED, rightsDetail(row, to));
    await recordChange(deps, tx, call, row, AuditAction.API_KEY_LIMITS_CHANGED, limitsDetail(row, to));
  });
}

function revoke(deps: ApiKeyDeps, request: RevokeApiKeyRequest, call: Call): Promise<ApiKey> {
  return changeKey(deps, request, call, async (tx, row) => {
    if (await revokeApiKey(tx, row.id))
      await recordChange(deps, tx, call, row, AuditAction.API_KEY_REVOKED, {});
  });
}

/** Adds a change to the audit log unless `detail` is undefined. */
async function recordChange(
  deps: ApiKeyDeps,
  tx: Sql,
  call: Call,
  { id: resourceId, projectId }: ApiKeyRow,
  action: AuditAction,
  detail: JsonObject | undefined,
): Promise<void> {
  if (detail === undefined) return;
  await recordAction(deps, tx, call, { action, projectId, resourceId, detail });
}

async function changeKey(
  { idempotency, clock, onKeyChange }: ApiKeyDeps,
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
      show: (sql, id) => getApiKeyMessage(sql, id, clock()),
    });
  } finally {
    onKeyChange(request.id);
  }
}

/** The key's columns after the update: the request's values, and the present ones for fields it leaves out. */
function updatedColumns(
  { scopes, clock }: ApiKeyDeps,
  key: ApiKeyRow,
  request: UpdateApiKeyRequest,
): ApiKeyChange {
  return {
    name: request.name ?? key.name,
    scopes: request.scopes.length === 0 ? key.scopes : validateScopes(request.scopes, scopes),
    expiresAt: updatedExpiry(key, request, clock()),
    ...mergeLimits(request.limits, key),
  };
}

function updatedExpiry(key: ApiKeyRow, { expiry }: UpdateApiKeyRequest, nowMs: number): Date | null {
  if (expiry.case === 'expiresAt') return validateExpiry(expiry.value, nowMs);
  return expiry.case === 'neverExpires' ? null : key.expiresAt;
}

/** Whether a key that has expired works again. */
function isRevived({ clock }: ApiKeyDeps, { expiresAt }: ApiKeyRow, to: ApiKeyChange): boolean {
  return expiresAt !== null && expiresAt.getTime() <= clock() && to.expiresAt !== expiresAt;
}

/** The audit detail of changed name, scopes and expiry. Returns undefined if none changed. */
function rightsDetail(from: ApiKeyChange, to: ApiKeyChange): JsonObject | undefined {
  return changedMembers({
    name: [from.name, to.name],
    scopes: [from.scopes, to.scopes],
    expires_at: [from.expiresAt?.toISOString() ?? null, to.expiresAt?.toISOString() ?? null],
  });
}

/** The audit detail of changed limits. Returns undefined if none changed. */
function limitsDetail(from: ApiKeyLimits, to: ApiKeyLimits): JsonObject | undefined {
  return changedMembers({
    submissions_per_second: [from.submissionsPerSecond, to.submissionsPerSecond],
    submissions_per_hour: [from.submissionsPerHour, to.submissionsPerHour],
    submissions_per_day: [from.submissionsPerDay, to.submissionsPerDay],
    reads_per_second: [from.readsPerSecond, to.readsPerSecond],
  });
}

function changedMembers(members: Record<string, [from: JsonValue, to: JsonValue]>): JsonObject | undefined {
  const changed = Object.entries(members).filter(
    ([, [from, to]]) => JSON.stringify(from) !== JSON.stringify(to),
  );
  if (changed.length === 0) return undefined;
  return Object.fromEntries(changed.map(([name, [from, to]]) => [name, { from, to }]));
}
