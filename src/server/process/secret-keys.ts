import type { Sql } from '../database/connect.js';

/** A key of SECRET_KEY that has been used: its id and its fingerprint, which does not reveal it. */
export type SecretKeyRow = { id: string; fingerprint: Uint8Array; firstUsedAt: Date };

/** Locks the list of keys until the transaction ends. */
export async function lockSecretKeys(tx: Sql): Promise<void> {
  await tx`SELECT pg_advisory_xact_lock(hashtextextended('secret keys', 0))`;
}

/** Lists the keys that have been used and not deleted, oldest first. */
export async function listSecretKeys(sql: Sql): Promise<SecretKeyRow[]> {
  return sql<SecretKeyRow[]>`
    SELECT id, fingerprint, first_used_at AS "firstUsedAt" FROM secret_key ORDER BY first_used_at, id`;
}

/** Records keys. A key whose id exists is not changed. */
export async function insertSecretKeys(
  sql: Sql,
  keys: readonly Pick<SecretKeyRow, 'id' | 'fingerprint'>[],
): Promise<void> {
  for (const { id, fingerprint } of keys) {
    await sql`INSERT INTO secret_key (id, fingerprint) VALUES (${id}, ${fingerprint}) ON CONFLICT DO NOTHING`;
  }
}

/** Deletes a key. @returns whether it existed */
export async function deleteSecretKey(sql: Sql, id: string): Promise<boolean> {
  return (await sql`DELETE FROM secret_key WHERE id = ${id} RETURNING id`).length > 0;
}

/** How many webhooks and exports have a secret encrypted under a key. */
export type SecretCounts = { webhooks: number; exports: number };

/**
 * Counts the webhooks and exports with a secret encrypted under each key, including earlier secrets of webhooks that
 * still sign. An encrypted secret starts with a version, the length of the key's id and the id.
 */
export async function countSecretsByKey(sql: Sql): Promise<Map<string, SecretCounts>> {
  const rows = await sql<(SecretCounts & { keyId: string })[]>`
    SELECT convert_from(substring(s FROM 3 FOR get_byte(s, 1)), 'LATIN1') AS "keyId",
      count(DISTINCT id) FILTER (WHERE is_webhook)::int AS webhooks,
      count(DISTINCT id) FILTER (WHERE NOT is_webhook)::int AS exports
    FROM (
      SELECT true AS is_webhook, id, s
      FROM webhook, unnest(older_secrets || previous_secret || secret,
        older_secrets_until || previous_secret_until || timestamptz 'infinity') AS secrets (s, until)
      WHERE deleted_at IS NULL AND until > clock_timestamp()
      UNION ALL
      SELECT false, id, secrets FROM export) stored
    WHERE length(s) > 1 GROUP BY 1`;
  return new Map(rows.map(({ keyId, ...counts }) => [keyId, counts]));
}
