import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { jcs } from '../../proof/bytes/jcs.js';
import type { Identity } from '../../protocol/identity.js';
import type { Lookup } from '../core/lookup.js';
import type { Ceiling, Principal } from '../core/principal.js';
import type { Pool } from '../database/connect.js';
import { parseApiKey } from '../keys/api-key.js';
import { hmacApiKey, type KeyRing } from '../keys/key-ring.js';
import { type ApiKeyLimits, findUsableApiKey, touchApiKey, type UsableApiKey } from './store/api-keys.js';
import { findUsableExchangedKey, type UsableExchangedKey } from './store/exchanged-keys.js';

/** Looks up the principals of API keys. */
export type Principals = Lookup<string, Principal | undefined> & {
  /** Returns undefined if the key is unknown, malformed, revoked or expired. */
  get(apiKey: string): Promise<Principal | undefined>;
  /**
   * Evicts a key, or all keys of a trust rule, from the cache. To be called when the key or rule was created, revoked or
   * changed.
   */
  evict(id: string): void;
};

/** A revoked key works at most this long in a process that misses the broadcast. */
const TTL_MS = 10_000;
const KEYS_CACHED = 10_000;
/** A key that was looked up before it was created works at the latest after this, if the broadcast is missed. */
const UNKNOWN_TTL_MS = 5_000;

type Known = { principal: Principal; expiresAtMs: number };

/** @param keys sub-keys for API keys: keys are looked up under each of them. @param clock Unix milliseconds */
export function createPrincipals(pool: Pool, keys: KeyRing, clock: () => number): Principals {
  const known = new LRUCache<string, Known>({ max: KEYS_CACHED, ttl: TTL_MS });
  const unknown = new LRUCache<string, true>({ max: KEYS_CACHED, ttl: UNKNOWN_TTL_MS });
  const lookups = new Map<string, Promise<Principal | undefined>>();
  let changes = 0;
  const lookUp = async (apiKey: string): Promise<Principal | undefined> => {
    const seen = changes;
    const found = await find(hmacApiKey(keys, apiKey));
    // A row read before a change must not be cached after it.
    if (seen === changes) {
      if (found === undefined) unknown.set(apiKey, true);
      else known.set(apiKey, found);
    }
    return found?.principal;
  };
  const find = async (hmacs: readonly Uint8Array[]): Promise<Known | undefined> => {
    const row = await findUsableApiKey(pool, hmacs);
    if (row !== undefined) {
      void touchApiKey(pool, row.id).catch(() => {});
      const expiresAtMs = row.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY;
      return { principal: principalOf(row), expiresAtMs };
    }
    const exchanged = await findUsableExchangedKey(pool, hmacs);
    if (exchanged === undefined) return undefined;
    const { id: keyId, trustRuleId: id, identity, ceiling, expiresAt } = exchanged;
    const principal = principalOfRule({ ...exchanged, id }, { keyId, identity });
    return { principal: { ...principal, ceiling: windowsOf(ceiling) }, expiresAtMs: expiresAt.getTime() };
  };
  /** Concurrent look-ups of the same key share one query. */
  const lookUpOnce = (apiKey: string): Promise<Principal | undefined> => {
    const found = lookups.get(apiKey) ?? lookUp(apiKey).finally(() => lookups.delete(apiKey));
    lookups.set(apiKey, found);
    return found;
  };
  return {
    peek(apiKey) {
      const cached = known.get(apiKey);
      return cached !== undefined && clock() < cached.expiresAtMs ? cached.principal : undefined;
    },
    async get(apiKey) {
      const cached = known.get(apiKey);
      if (cached !== undefined) return clock() < cached.expiresAtMs ? cached.principal : undefined;
      return parseApiKey(apiKey) === undefined || unknown.has(apiKey) ? undefined : lookUpOnce(apiKey);
    },
    evict(id) {
      changes++;
      unknown.clear();
      lookups.clear();
      for (const [apiKey, { principal }] of known.entries()) {
        if (principal.id === id) known.delete(apiKey);
      }
    },
  };
}

function principalOf(row: UsableApiKey): Principal {
  return {
    id: row.id,
    projectId: row.projectId,
    environment: row.environment,
    scopes: row.scopes,
    ...windowsOf(row),
    ceiling: windowsOf(row.ceiling),
  };
}

/**
 * The principal of a key that was exchanged by a trust rule, without the limits of its project. The rule's id counts. A
 * space ends the prefix of its idempotency keys, because no caller's key has one.
 */
export function principalOfRule(
  rule: Pick<UsableExchangedKey, 'projectId' | 'environment' | 'scopes'> & ApiKeyLimits & { id: string },
  { keyId, identity }: { keyId: string; identity: Identity },
): Principal {
  const { id, projectId, environment, scopes } = rule;
  const idempotencyPrefix = `${createHash('sha256').update(jcs(identity)).digest('base64url')} `;
  const exchanged = { keyId, idempotencyPrefix };
  return { id, projectId, environment, scopes, ...windowsOf(rule), identity, exchanged };
}

function windowsOf(limits: ApiKeyLimits): Ceiling {
  return {
    submissionWindows: [
      { windowSeconds: 1, limit: limits.submissionsPerSecond },
      { windowSeconds: 3_600, limit: limits.submissionsPerHour },
      { windowSeconds: 86_400, limit: limits.submissionsPerDay },
    ],
    readWindow: { windowSeconds: 1, limit: limits.readsPerSecond },
  };
}
