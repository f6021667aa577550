import type { Pool, Sql } from '../../database/connect.js';

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

/**
 * Makes these the chains of the authority of this name, trusted from now on unless they are already. Its other chains
 * stay trusted for an hour.
 */
export async function ensureTimestampAuthority(
  pool: Pool,
  authority: { name: string; url: string; operator: string; certChainsPem: string[][] },
): Promise<void> {
  const { name, url, operator } = authority;
  // Postgres has no arrays of arrays of different lengths.
  const chains = authority.certChainsPem.map((chain) => JSON.stringify(chain));
  await pool.begin(async (tx) => {
    await tx`SELECT pg_advisory_xact_lock(hashtextextended(${`timestamp authority ${name}`}, 0))`;
    await tx`
      UPDATE timestamp_authority SET url = ${url}, operator = ${operator} WHERE name = ${name} AND valid_to IS NULL`;
    await tx`
      UPDATE timestamp_authority SET valid_to = ${after(tx, OVERLAP_MS)}
      WHERE name = ${name} AND valid_to IS NULL AND to_jsonb(cert_chain_pem) <> ALL (${chains}::text[]::jsonb[])`;
    await tx`
      INSERT INTO timestamp_authority (name, url, operator, cert_chain_pem)
      SELECT ${name}, ${url}, ${operator}, ARRAY(SELECT jsonb_array_elements_text(c.chain))
      FROM unnest(${chains}::text[]::jsonb[]) WITH ORDINALITY AS c(chain, place)
      WHERE NOT EXISTS (SELECT FROM timestamp_authority a
        WHERE a.name = ${name} AND a.valid_to IS NULL AND to_jsonb(a.cert_chain_pem) = c.chain)
      ORDER BY c.place`;
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
