import type { Pool, Sql } from '../database/connect.js';

/** A time-stamping authority's certificate chain, leaf first, and since when it is used. */
export type TimestampAuthorityRow = {
  name: string;
  url: string;
  operator: string;
  certChainPem: string[];
  validFrom: Date;
  validTo: Date | null;
};

/** Every time-stamping authority that is or was used, oldest first. */
export async function listTimestampAuthorities(sql: Sql): Promise<TimestampAuthorityRow[]> {
  return sql<TimestampAuthorityRow[]>`
    SELECT name, url, operator, cert_chain_pem AS "certChainPem", valid_from AS "validFrom", valid_to AS "validTo"
    FROM timestamp_authority ORDER BY id`;
}

/** How long a chain that was replaced stays trusted, for workers that have not been restarted with the new one. */
const OVERLAP_MS = 60 * 60_000;

/** Makes this the authority of its name; one with another chain stays trusted for an hour. */
export async function ensureTimestampAuthority(
  pool: Pool,
  authority: { name: string; url: string; operator: string; certChainPem: string[] },
): Promise<void> {
  const { name, url, operator, certChainPem } = authority;
  await pool.begin(async (tx) => {
    await tx`SELECT pg_advisory_xact_lock(hashtextextended(${`timestamp authority ${name}`}, 0))`;
    const same = await tx`
      UPDATE timestamp_authority SET url = ${url}, operator = ${operator}
      WHERE name = ${name} AND valid_to IS NULL AND cert_chain_pem = ${certChainPem} RETURNING id`;
    if (same.length > 0) return;
    await tx`
      UPDATE timestamp_authority SET valid_to = ${after(tx, OVERLAP_MS)} WHERE name = ${name} AND valid_to IS NULL`;
    await tx`
      INSERT INTO timestamp_authority (name, url, operator, cert_chain_pem)
      VALUES (${name}, ${url}, ${operator}, ${certChainPem})`;
  });
}

/**
 * Ends the trust in authorities of other names than these, once, after an hour or the deadline of batches under way, if
 * that is longer. What they stamped until then stays good.
 */
export async function retireTimestampAuthorities(
  sql: Sql,
  keptNames: readonly string[],
  deadlineMs: number,
): Promise<void> {
  await sql`
    UPDATE timestamp_authority SET valid_to = ${after(sql, Math.max(OVERLAP_MS, deadlineMs))}
    WHERE valid_to IS NULL AND name <> ALL (${[...keptNames]}::text[])`;
}

/** So long from now, or from the beginning if the database's clock was set back since. */
function after(sql: Sql, ms: number) {
  return sql`greatest(clock_timestamp(), valid_from) + ${ms}::bigint * interval '1 millisecond'`;
}
