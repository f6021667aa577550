import type { Identity } from '../../../protocol/identity.js';
import type { Sql } from '../../database/connect.js';
import { type ApiKeyLimits, type Ceilings, ceilingColumns, highestLimits, withCeiling } from './api-keys.js';

/** An API key that was exchanged for a token, with the rights of its trust rule. Without the key itself. */
export type ExchangedKeyRow = ApiKeyLimits & {
  id: string;
  trustRuleId: string;
  projectId: string;
  projectName: string;
  environment: number;
  scopes: string[];
  prefix: string;
  last4: string;
  identity: Identity;
  createdAt: Date;
  expiresAt: Date;
};

/** A key that works, and the limits of its project. */
export type UsableExchangedKey = ExchangedKeyRow & { ceiling: ApiKeyLimits };

const columns = (sql: Sql) => sql`
  e.id, r.id AS "trustRuleId", r.project_id AS "projectId", p.name AS "projectName", r.environment, r.scopes,
  e.prefix, e.last4, e.identity, e.created_at AS "createdAt", e.expires_at AS "expiresAt",
  r.submissions_per_second AS "submissionsPerSecond", r.submissions_per_hour AS "submissionsPerHour",
  r.submissions_per_day AS "submissionsPerDay", r.reads_per_second AS "readsPerSecond"`;

const joined = (sql: Sql) =>
  sql`exchanged_key e JOIN trust_rule r ON r.id = e.trust_rule_id JOIN project p ON p.id = r.project_id`;

/** Finds the key with one of these keyed hashes, unless it has expired or its rule was removed. */
export async function findUsableExchangedKey(
  sql: Sql,
  hmacs: readonly Uint8Array[],
): Promise<UsableExchangedKey | undefined> {
  const rows = await sql<(ExchangedKeyRow & Ceilings)[]>`
    SELECT ${columns(sql)}, ${ceilingColumns(sql)} FROM ${joined(sql)} ${highestLimits(sql)}
    WHERE e.hmac IN ${sql(hmacs.map((hmac) => Buffer.from(hmac)))}
      AND r.removed_at IS NULL AND e.expires_at > clock_timestamp()`;
  return rows[0] && withCeiling(rows[0]);
}

/** Finds a key by id. */
export async function findExchangedKey(sql: Sql, id: string): Promise<ExchangedKeyRow | undefined> {
  const rows = await sql<ExchangedKeyRow[]>`SELECT ${columns(sql)} FROM ${joined(sql)} WHERE e.id = ${id}`;
  return rows[0];
}

/** The secret of a key as it is stored. */
export type StoredSecret = { prefix: string; last4: string; hmac: Uint8Array };

/** An exchanged key to insert. */
export type NewExchangedKey = StoredSecret & {
  id: string;
  trustRuleId: string;
  identity: Identity;
  lifetimeMs: number;
};

/** Inserts a key. @returns when it expires */
export async function insertExchangedKey(tx: Sql, key: NewExchangedKey): Promise<Date> {
  const [row] = await tx<{ expiresAt: Date }[]>`
    INSERT INTO exchanged_key (id, trust_rule_id, prefix, last4, hmac, identity, expires_at)
    VALUES (${key.id}, ${key.trustRuleId}, ${key.prefix}, ${key.last4}, ${key.hmac},
            ${JSON.stringify(key.identity)}::text::jsonb,
            clock_timestamp() + ${key.lifetimeMs}::bigint * interval '1 millisecond')
    RETURNING expires_at AS "expiresAt"`;
  if (row === undefined) throw new Error('the key was not inserted');
  return row.expiresAt;
}

/** Replaces the secret of a key of a rule: the earlier one stops working. @returns when it expires; undefined without the key */
export async function replaceSecret(
  tx: Sql,
  { id, trustRuleId, last4, hmac }: Pick<NewExchangedKey, 'id' | 'trustRuleId' | 'last4' | 'hmac'>,
): Promise<Date | undefined> {
  const rows = await tx<{ expiresAt: Date }[]>`
    UPDATE exchanged_key SET last4 = ${last4}, hmac = ${hmac} WHERE id = ${id} AND trust_rule_id = ${trustRuleId}
    RETURNING expires_at AS "expiresAt"`;
  return rows[0]?.expiresAt;
}

/** A token that is exchanged once; `expiresAt` is its own. */
export type OnceOnly = { hash: Uint8Array; expiresAt: Date };

/** Records that a token was exchanged for a key. @returns the key of an earlier exchange and its age; undefined if there is none */
export async function claimToken(
  tx: Sql,
  { hash, expiresAt }: OnceOnly,
  keyId: string,
): Promise<{ keyId: string; ageMs: number } | undefined> {
  const claimed = await tx`
    INSERT INTO exchanged_token (hash, key_id, expires_at) VALUES (${hash}, ${keyId}, ${expiresAt})
    ON CONFLICT (hash) DO NOTHING RETURNING hash`;
  if (claimed.length > 0) return undefined;
  const rows = await tx<{ keyId: string; ageMs: number }[]>`
    SELECT key_id AS "keyId", (extract(epoch FROM clock_timestamp() - exchanged_at) * 1000)::float8 AS "ageMs"
    FROM exchanged_token WHERE hash = ${hash} FOR UPDATE`;
  return rows[0];
}

/** Deletes expired keys, and the records of expired tokens. */
export async function pruneExchangedKeys(sql: Sql): Promise<void> {
  await sql`DELETE FROM exchanged_key WHERE expires_at < clock_timestamp() - interval '1 minute'`;
  await sql`DELETE FROM exchanged_token WHERE expires_at < clock_timestamp() - interval '5 minutes'`;
}
