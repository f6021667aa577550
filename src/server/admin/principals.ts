import { LRUCache } from 'lru-cache';
import type { Lookup } from '../core/lookup.js';
import type { Ceiling, Principal } from '../core/principal.js';
import type { Pool } from '../database/connect.js';
import { parseApiKey } from '../keys/api-key.js';
import { hmacApiKey, type KeyRing } from '../keys/key-ring.js';
import { type ApiKeyLimits, findUsableApiKey, touchApiKey, type UsableApiKey } from './store/api-keys.js';

/** Looks up the principals of API keys. */
export type Principals = Lookup<string, Principal | undefined> & {
  /** Returns undefined if the key is unknown, malformed, revoked or expired. */
  get(apiKey: string): Promise<Principal | undefined>;
  /** Evicts a key from the cache. To be called when it was created, revoked or changed. */
  evict(apiKeyId: string): void;
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
    const row = await findUsableApiKey(pool, hmacApiKey(keys, apiKey));
    if (row === undefined) {
      if (seen === changes) unknown.set(apiKey, true);
      return undefined;
    }
    void touchApiKey(pool, row.id).catch(() => {});
    const expiresAtMs = row.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY;
    const principal = principalOf(row);
    // A row read before a change must not be cached after it.
    if (seen === changes) known.set(apiKey, { principal, expiresAtMs });
    return principal;
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
    evict(apiKeyId) {
      changes++;
      unknown.clear();
      lookups.clear();
      for (const [apiKey, { principal }] of known.entries()) {
        if (principal.id === apiKeyId) known.delete(apiKey);
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
