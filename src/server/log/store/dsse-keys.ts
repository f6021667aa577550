import type { Pool, Sql } from '../../database/connect.js';

/** A key that signs statements: `spki` is its public part in DER. */
export type DsseKey = {
  id: number;
  environment: number;
  spki: Uint8Array;
  /** When it was published. */
  validFrom: Date;
  /** From when it signs, until another key does. Null while it is only published. */
  activeFrom: Date | null;
  /** Set once everything that it has signed is witnessed, or when it was revoked. */
  validTo: Date | null;
};

/** Lists all keys that sign, signed or will sign statements, oldest first. */
export async function listDsseKeys(sql: Sql): Promise<DsseKey[]> {
  return sql<DsseKey[]>`
    SELECT id, environment, spki, valid_from AS "validFrom", active_from AS "activeFrom", valid_to AS "validTo"
    FROM dsse_key ORDER BY id`;
}

/**
 * Returns the key that signs an environment's statements at a time of the database's clock. The first one signs before its
 * time too: a process that has just published it may estimate that clock some milliseconds behind.
 */
export function findActiveKey(
  keys: readonly DsseKey[],
  environment: number,
  atMs: number,
): DsseKey | undefined {
  const own = keys
    .filter((key) => key.environment === environment && key.activeFrom !== null)
    .sort((a, b) => (isNewer(a, b) ? 1 : -1));
  return own.findLast(({ activeFrom }) => activeFrom!.getTime() <= atMs) ?? own[0];
}

function isNewer({ activeFrom, id }: DsseKey, than: DsseKey): boolean {
  const laterMs = activeFrom!.getTime() - than.activeFrom!.getTime();
  return laterMs > 0 || (laterMs === 0 && id > than.id);
}

/** Locks the list of keys until the transaction ends. */
export async function lockDsseKeys(tx: Sql): Promise<void> {
  await tx`SELECT pg_advisory_xact_lock(hashtextextended('dsse keys', 0))`;
}

/** Publishes a key unless it is known. The first of an environment signs at once, others after a rotation. */
export async function ensureDsseKey(pool: Pool, environment: number, spki: Uint8Array): Promise<void> {
  await pool.begin(async (tx) => {
    await lockDsseKeys(tx);
    await tx`
      INSERT INTO dsse_key (environment, spki, active_from)
      SELECT ${environment}, ${spki}, CASE
        WHEN NOT EXISTS (SELECT FROM dsse_key WHERE environment = ${environment}) THEN clock_timestamp() END
      ON CONFLICT (spki) DO NOTHING`;
  });
}

/** Sets when a key begins to sign: so many milliseconds from now, or never. */
export async function setActiveFrom(tx: Sql, id: number, afterMs: number | undefined): Promise<Date | null> {
  const [row] = await tx<{ activeFrom: Date | null }[]>`
    UPDATE dsse_key
    SET active_from = clock_timestamp() + ${afterMs ?? null}::bigint * interval '1 millisecond'
    WHERE id = ${id} RETURNING active_from AS "activeFrom"`;
  return row?.activeFrom ?? null;
}

/** Ends the trust in a key at a time, or earlier if it ends earlier. @returns when it ends */
export async function endDsseKey(tx: Sql, id: number, at: Date): Promise<Date | null> {
  const [row] = await tx<{ validTo: Date }[]>`
    UPDATE dsse_key SET valid_to = greatest(valid_from, least(valid_to, ${at}::timestamptz))
    WHERE id = ${id} RETURNING valid_to AS "validTo"`;
  return row?.validTo ?? null;
}
