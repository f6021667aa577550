import type { Sql } from '../database/connect.js';

/** Leases an idempotency key for a call whose effect begins outside the database. Returns false if another call has it. */
export async function takeKeyLease(sql: Sql, holder: string, key: string, leaseMs: number): Promise<boolean> {
  const { count } = await sql`
    INSERT INTO idempotency_lease AS l (api_key_id, key, leased_until)
    VALUES (${holder}, ${key}, clock_timestamp() + ${leaseMs}::bigint * interval '1 millisecond')
    ON CONFLICT (api_key_id, key) DO UPDATE SET leased_until = excluded.leased_until
    WHERE l.leased_until < clock_timestamp()`;
  return count === 1;
}

/** Ends the lease of a key. */
export async function releaseKeyLease(sql: Sql, holder: string, key: string): Promise<void> {
  await sql`DELETE FROM idempotency_lease WHERE api_key_id = ${holder} AND key = ${key}`;
}

/** Deletes leases that have ended: those of killed processes. */
export async function pruneKeyLeases(sql: Sql): Promise<void> {
  await sql`DELETE FROM idempotency_lease WHERE leased_until < clock_timestamp()`;
}
