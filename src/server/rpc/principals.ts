import { LRUCache } from 'lru-cache';
import type { Principal } from '../core/principal.js';
import { parseApiKey } from '../keys/api-key.js';
import { hmacApiKey, type KeyRing } from '../keys/key-ring.js';
import type { Pool } from '../store/database/connect.js';
import { type ApiKeyRow, findUsableApiKey, touchApiKey } from '../store/projects/api-keys.js';

/** Finds out who holds an API key. */
export type Principals = {
  /** The principal of a usable key; undefined when it is unknown, malformed, revoked or expired. */
  find(apiKey: string): Promise<Principal | undefined>;
  /** Forgets a key at once, because it was made, revoked or changed. */
  forget(apiKeyId: string): void;
};

/** A revoked key works for at most this long in a process that does not hear of it. */
const TTL_MS = 10_000;
const KEYS_CACHED = 10_000;
/** A key that is made after it was asked for works after this at the latest, where its making is not heard of. */
const UNKNOWN_TTL_MS = 5_000;

type Known = { principal: Principal; expiresAtMs: number };

/** @param keys sub-keys for API keys: keys are looked up under each of them */
export function createPrincipals(pool: Pool, keys: KeyRing, clock: () => number): Principals {
  const known = new LRUCache<string, Known>({ max: KEYS_CACHED, ttl: TTL_MS });
  const unknown = new LRUCache<string, true>({ max: KEYS_CACHED, ttl: UNKNOWN_TTL_MS });
  const asking = new Map<string, Promise<Principal | undefined>>();
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
    // What was read before a change must not outlive it.
    if (seen === changes) known.set(apiKey, { principal, expiresAtMs });
    return principal;
  };
  /** Those who ask for the same key at once share one look-up. */
  const lookUpOnce = (apiKey: string): Promise<Principal | undefined> => {
    const found = asking.get(apiKey) ?? lookUp(apiKey).finally(() => asking.delete(apiKey));
    asking.set(apiKey, found);
    return found;
  };
  return {
    async find(apiKey) {
      const cached = known.get(apiKey);
      if (cached !== undefined) return clock() < cached.expiresAtMs ? cached.principal : undefined;
      return parseApiKey(apiKey) === undefined || unknown.has(apiKey) ? undefined : lookUpOnce(apiKey);
    },
    forget(apiKeyId) {
      changes++;
      unknown.clear();
      asking.clear();
      for (const [apiKey, { principal }] of known.entries()) {
        if (principal.apiKeyId === apiKeyId) known.delete(apiKey);
      }
    },
  };
}

function principalOf(row: ApiKeyRow): Principal {
  return {
    apiKeyId: row.id,
    projectId: row.projectId,
    environment: row.environment,
    scopes: row.scopes,
    submissionWindows: [
      { windowSeconds: 1, limit: row.submissionsPerSecond },
      { windowSeconds: 3_600, limit: row.submissionsPerHour },
      { windowSeconds: 86_400, limit: row.submissionsPerDay },
    ],
    readWindow: { windowSeconds: 1, limit: row.readsPerSecond },
  };
}
