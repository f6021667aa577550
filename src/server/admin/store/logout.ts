import type { Sql } from '../../database/connect.js';

/** Records that a logout token was used. @returns false if it was before */
export async function useLogoutToken(tx: Sql, hash: Uint8Array, keptSeconds: number): Promise<boolean> {
  const rows = await tx`
    INSERT INTO logout_token (hash, expires_at)
    VALUES (${Buffer.from(hash)}, clock_timestamp() + ${keptSeconds}::bigint * interval '1 second')
    ON CONFLICT DO NOTHING RETURNING hash`;
  return rows.length > 0;
}

/** Ends the sessions of people that the provider's session started, or all of a subject. @returns their ids and persons' */
export async function deleteProviderSessions(
  tx: Sql,
  { issuer, subject, providerSession }: { issuer: string; subject?: string; providerSession?: string },
): Promise<{ id: string; person: string }[]> {
  return tx<{ id: string; person: string }[]>`
    DELETE FROM session s USING person o
    WHERE o.id = s.person_id AND o.issuer = ${issuer}
      ${subject === undefined ? tx`` : tx`AND o.subject = ${subject}`}
      ${providerSession === undefined ? tx`` : tx`AND s.provider_session = ${providerSession}`}
    RETURNING s.id, o.id AS person`;
}

/** Deletes the tokens that are too old to be used again. */
export async function pruneLogoutTokens(sql: Sql): Promise<void> {
  await sql`DELETE FROM logout_token WHERE expires_at < clock_timestamp()`;
}
