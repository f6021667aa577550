import { randomBytes } from 'node:crypto';
import { getOption } from '@bufbuild/protobuf';
import { ulid } from 'ulid';
import { rules } from '../../gen/attestation/options/v1/options_pb.js';
import { AttestationService } from '../../gen/attestation/v1/attestations_pb.js';
import { BatchService } from '../../gen/attestation/v1/batches_pb.js';
import { Environment } from '../../gen/attestation/v1/environment_pb.js';
import { WebhookService } from '../../gen/attestation/v1/webhooks_pb.js';
import { createApiKey, parseApiKey } from '../api-key.js';
import type { Principal } from '../principal.js';
import type { NewSecret } from '../rpc/admin/api-key-deps.js';
import { deriveKeyRing, hmacApiKey, type KeyRing } from '../secret-key.js';
import {
  type ApiKeyRow,
  DEFAULT_LIMITS,
  findApiKey,
  insertApiKey,
  listApiKeys,
  revokeApiKey,
} from '../store/api-keys.js';
import type { Pool, Sql } from '../store/connect.js';
import { insertProject, listProjects } from '../store/projects.js';
import type { KeyManager } from './contract.js';

/** A key to make. Without scopes it has all; without an expiry it is valid until revoked. */
export type NewKey = {
  environment: Principal['environment'];
  projectId: string;
  name: string;
  scopes: readonly string[] | undefined;
  expiresAt: Date | undefined;
};

/** Every scope that a method of the API asks for: what a key may have. */
export const SCOPES: readonly string[] = [AttestationService, BatchService, WebhookService]
  .flatMap(({ methods }) => methods.map((method) => getOption(method, rules).scope))
  .filter((scope, index, all) => all.indexOf(scope) === index)
  .sort();

/** @param apiKeys sub-keys for API keys; the first hashes new ones */
export function newSecret(apiKeys: KeyRing, environment: Principal['environment']): NewSecret {
  const secret = createApiKey(environment, randomBytes);
  const parts = parseApiKey(secret);
  if (parts === undefined) throw new Error('a new key does not parse');
  return { secret, prefix: parts.prefix, last4: parts.last4, hmac: hmacApiKey(apiKeys, secret)[0] };
}

/** Makes an API key. The key itself is in the answer and nowhere else. Throws when a scope does not exist. */
export async function makeKey(
  sql: Sql | Pool,
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

/** Makes a project. @returns its id */
export async function makeProject(sql: Sql | Pool, name: string): Promise<string> {
  const id = `prj_${ulid()}`;
  await insertProject(sql, { id, name });
  return id;
}

/** What `attest keys` does, over an open database. `announce` tells running processes of a revoked key. */
export function keyManager(
  pool: Pool,
  secretKeys: KeyRing,
  announce: (id: string) => Promise<void>,
): KeyManager {
  return {
    create: async ({ environment, projectId, name, scopes, expiresAt }) =>
      makeKey(pool, secretKeys, {
        environment: environment === 'live' ? Environment.LIVE : Environment.TEST,
        projectId: await chooseProject(pool, projectId),
        name,
        scopes,
        expiresAt,
      }),
    list: (projectId) => listApiKeys(pool, { projectId, before: undefined, limit: MAX_LISTED }),
    revoke: async (id) => {
      if (await revokeApiKey(pool, id)) await announce(id);
      return findApiKey(pool, id);
    },
  };
}

const MAX_LISTED = 1_000;

/** The project that a command means: the one it names, or the only one there is. */
export async function chooseProject(sql: Sql | Pool, named: string | undefined): Promise<string> {
  const projects = await listProjects(sql, { before: undefined, limit: 1_000 });
  if (named !== undefined) {
    if (projects.some(({ id }) => id === named)) return named;
    throw new Error(`there is no project ${named}`);
  }
  const [only, ...others] = projects;
  if (only === undefined) return makeProject(sql, 'first project');
  if (others.length > 0) throw new Error('there are several projects: name one with --project');
  return only.id;
}
