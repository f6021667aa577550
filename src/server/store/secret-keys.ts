import type { Sql } from './database/connect.js';

/** A key of SECRET_KEY that was worked with: its id, and a fingerprint that tells nothing of it. */
export type SecretKeyRow = { id: string; fingerprint: Uint8Array; firstUsedAt: Date };

/** Keeps others from adding keys until the transaction ends. */
export async function lockSecretKeys(tx: Sql): Promise<void> {
  await tx`SELECT pg_advisory_xact_lock(hashtextextended('secret keys', 0))`;
}

/** Every key that was worked with and not forgotten, oldest first. */
export async function listSecretKeys(sql: Sql): Promise<SecretKeyRow[]> {
  return sql<SecretKeyRow[]>`
    SELECT id, fingerprint, first_used_at AS "firstUsedAt" FROM secret_key ORDER BY first_used_at, id`;
}

/** Remembers keys; one whose id is there stays as it is. */
export async function insertSecretKeys(
  sql: Sql,
  keys: readonly Pick<SecretKeyRow, 'id' | 'fingerprint'>[],
): Promise<void> {
  for (const { id, fingerprint } of keys) {
    await sql`INSERT INTO secret_key (id, fingerprint) VALUES (${id}, ${fingerprint}) ON CONFLICT DO NOTHING`;
  }
}

/** Forgets a key. @returns whether it was there */
export async function deleteSecretKey(sql: Sql, id: string): Promise<boolean> {
  return (await sql`DELETE FROM secret_key WHERE id = ${id} RETURNING id`).length > 0;
}

/**
 * How many webhooks that are not deleted have a secret under each key, earlier ones that still sign included. The
 * bytes of an encrypted secret name the key: a version, the length of its id, the id.
 */
export async function countSecretsByKey(sql: Sql): Promise<Map<string, number>> {
  const rows = await sql<{ keyId: string; webhooks: number }[]>`
    SELECT convert_from(substring(s FROM 3 FOR get_byte(s, 1)), 'LATIN1') AS "keyId", count(DISTINCT id)::int AS webhooks
    FROM webhook, unnest(older_secrets || previous_secret || secret,
      older_secrets_until || previous_secret_until || timestamptz 'infinity') AS secrets (s, until)
    WHERE deleted_at IS NULL AND until > clock_timestamp() AND length(s) > 1 GROUP BY 1`;
  return new Map(rows.map(({ keyId, webhooks }) => [keyId, webhooks]));
}
