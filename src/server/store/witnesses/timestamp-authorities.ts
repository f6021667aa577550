import type { Pool, Sql } from '../database/connect.js';

/** A time-stamping authority: its certificate chain, leaf first, and when it was trusted. */
export type TimestampAuthorityRow = {
  name: string;
  url: string;
  operator: string;
  certChainPem: string[];
  validFrom: Date;
  validTo: Date | null;
};

/** Lists all time-stamping authorities, current and former, oldest first. */
export async function listTimestampAuthorities(sql: Sql): Promise<TimestampAuthorityRow[]> {
  return sql<TimestampAuthorityRow[]>`
    SELECT name, url, operator, cert_chain_pem AS "certChainPem", valid_from AS "validFrom", valid_to AS "validTo"
    FROM timestamp_authority ORDER BY id`;
}

/** How long a replaced chain stays trusted, for workers that still run with it. */
const OVERLAP_MS = 60 * 60_000;

/** Makes this the authority of its name. One with another chain stays trusted for an hour. */
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
 * Ends the trust in authorities of other names after an hour, or after the deadline of pending batches if that is
 * longer. Their earlier time stamps stay valid.
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

/** `ms` after now, or after `valid_from` if the database's clock was set back since. */
function after(sql: Sql, ms: number) {
  return sql`greatest(clock_timestamp(), valid_from) + ${ms}::bigint * interval '1 millisecond'`;
}
