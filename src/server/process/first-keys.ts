import { randomBytes } from 'node:crypto';
import { ulid } from 'ulid';
import { SCOPES } from '../../protocol/scopes.js';
import type { NewSecret } from '../admin/create-api-key.js';
import { type ApiKeyRow, DEFAULT_LIMITS, findApiKey, insertApiKey } from '../admin/store/api-keys.js';
import { insertProject } from '../admin/store/projects.js';
import type { Principal } from '../core/principal.js';
import type { Sql } from '../database/connect.js';
import { createApiKey, parseApiKey } from '../keys/api-key.js';
import { deriveKeyRing, hmacApiKey, type KeyRing } from '../keys/key-ring.js';

/** A key to create: all scopes if undefined, valid until revoked if it has no expiry. */
type NewKey = {
  environment: Principal['environment'];
  projectId: string;
  name: string;
  scopes: readonly string[] | undefined;
  expiresAt: Date | undefined;
};

/** @param apiKeys sub-keys for API keys; the first hashes new ones */
export function newSecret(apiKeys: KeyRing, environment: Principal['environment']): NewSecret {
  const secret = createApiKey(environment, randomBytes);
  const parts = parseApiKey(secret);
  if (parts === undefined) throw new Error('a new key does not parse');
  return { secret, prefix: parts.prefix, last4: parts.last4, hmac: hmacApiKey(apiKeys, secret)[0] };
}

/** Creates an API key and returns it; only its hash is stored. Throws if a scope does not exist. */
export async function makeKey(
  sql: Sql,
  secretKeys: KeyRing,
  wanted: NewKey,
): Promise<{ key: string; row: ApiKeyRow }> {
  const scopes = wanted.scopes ?? SCOPES;
  const unknown = scopes.find((scope) => !SCOPES.includes(scope));
  if (unknown !== undefined) throw new Error(`there is no scope ${unknown}; there are ${SCOPES.join(', ')}`);
  const { secret, ...stored } = newSecret(deriveKeyRing(secretKeys, 'api-key'), wanted.environment);
  const { projectId, environment, name } = wanted;
  const id = `key_${ulid()}`;
  const limits = DEFAULT_LIMITS;
  const expiresAt = wanted.expiresAt ?? null;
  await insertApiKey(sql, { id, projectId, environment, name, scopes, expiresAt, limits, ...stored });
  const row = await findApiKey(sql, id);
  if (row === undefined) throw new Error(`the key ${id} is missing`);
  return { key: secret, row };
}

/** Creates a project. @returns its id */
export async function makeProject(sql: Sql, name: string): Promise<string> {
  const id = `prj_${ulid()}`;
  await insertProject(sql, { id, name });
  return id;
}
