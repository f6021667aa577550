import type { Pool, Sql } from './database/connect.js';

/** A key that signs statements: `spki` is its public part in DER. */
export type DsseKey = {
  id: number;
  environment: number;
  spki: Uint8Array;
  validFrom: Date;
  validTo: Date | null;
};

/** How long a replaced key stays valid, for processes that still run with it. */
const OVERLAP = '1 hour';

/** Lists all keys that sign or signed statements, oldest first. */
export async function listDsseKeys(sql: Sql): Promise<DsseKey[]> {
  return sql<DsseKey[]>`
    SELECT id, environment, spki, valid_from AS "validFrom", valid_to AS "validTo" FROM dsse_key ORDER BY id`;
}

/** Makes this the environment's signing key. The key that it replaces stays valid for an hour. */
export async function ensureDsseKey(pool: Pool, environment: number, spki: Uint8Array): Promise<void> {
  await pool.begin(async (tx) => {
    const added = await tx`
      INSERT INTO dsse_key (environment, spki) VALUES (${environment}, ${spki}) ON CONFLICT (spki) DO NOTHING RETURNING id`;
    if (added.length === 0) return;
    await tx`
      UPDATE dsse_key SET valid_to = greatest(clock_timestamp(), valid_from) + ${OVERLAP}::interval
      WHERE environment = ${environment} AND spki <> ${spki} AND valid_to IS NULL`;
  });
}
