import type { Pool, Sql } from './connect.js';

/** A key that signs statements: `spki` is its public part in DER. */
export type DsseKey = {
  id: number;
  environment: number;
  spki: Uint8Array;
  validFrom: Date;
  validTo: Date | null;
};

/** How long a replaced key stays valid, for processes that have not been restarted with the new one. */
const OVERLAP = '1 hour';

/** Every key that signs or signed statements, oldest first. */
export async function listDsseKeys(sql: Sql): Promise<DsseKey[]> {
  return sql<DsseKey[]>`
    SELECT id, environment, spki, valid_from AS "validFrom", valid_to AS "validTo" FROM dsse_key ORDER BY id`;
}

/** Makes this the environment's signing key; one it replaces stays valid for an hour. */
export async function ensureDsseKey(pool: Pool, environment: number, spki: Uint8Array): Promise<void> {
  await pool.begin(async (tx) => {
    const added = await tx`
      INSERT INTO dsse_key (environment, spki) VALUES (${environment}, ${spki}) ON CONFLICT (spki) DO NOTHING RETURNING id`;
    if (added.length === 0) return;
    await tx`
      UPDATE dsse_key SET valid_to = clock_timestamp() + ${OVERLAP}::interval
      WHERE environment = ${environment} AND spki <> ${spki} AND valid_to IS NULL`;
  });
}

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

/** Makes this the authority of its name; one with another chain is retired from now on. */
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
    await tx`UPDATE timestamp_authority SET valid_to = clock_timestamp() WHERE name = ${name} AND valid_to IS NULL`;
    await tx`
      INSERT INTO timestamp_authority (name, url, operator, cert_chain_pem)
      VALUES (${name}, ${url}, ${operator}, ${certChainPem})`;
  });
}
