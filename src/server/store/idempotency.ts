import type { Pool, Sql } from './database/connect.js';

/** One use of an idempotency key. */
export type Claim = {
  /** Whose key it is: the id of an API key, or `admin`. */
  holder: string;
  key: string;
  /** Keyed hashes of the request, under the newest key first; any of them means the same request. */
  requestHashes: readonly Uint8Array[];
  /** For how long a claim stands. */
  retentionMs: number;
};

/** What became of a claim: the effect, the resource that an earlier effect had, or neither. */
export type Claimed<T> =
  | { outcome: 'done'; effect: T }
  | { outcome: 'replayed'; resourceId: string }
  | { outcome: 'reused' }
  | { outcome: 'busy' };

/**
 * Runs an effect in a transaction that also notes the claim: both are committed, or neither. Where the claim stands
 * already nothing is run, and while another transaction is about it nothing is waited for. The lock and the rows are
 * those of `sequence_submissions`, so that a key is one key for every RPC.
 *
 * @param effect what to do once; `resourceId` is what a replay is answered with
 */
export function runClaimed<T extends { resourceId: string }>(
  pool: Pool,
  claim: Claim,
  effect: (tx: Sql) => Promise<T>,
): Promise<Claimed<T>> {
  const { holder, key } = claim;
  return pool.begin(async (tx): Promise<Claimed<T>> => {
    const [lock] = await tx<{ taken: boolean }[]>`
      SELECT pg_try_advisory_xact_lock(hashtextextended(${holder} || ' ' || ${key}, 0)) AS taken`;
    if (lock?.taken !== true) return { outcome: 'busy' };
    const earlier = await findClaim(tx, claim);
    if (earlier !== undefined) return earlier;
    const done = await effect(tx);
    await tx`
      INSERT INTO idempotency_key (api_key_id, key, request_hash, resource_id, created_at)
      VALUES (${holder}, ${key}, ${claim.requestHashes[0] ?? null}, ${done.resourceId}, clock_timestamp())
      ON CONFLICT ON CONSTRAINT idempotency_key_pkey DO UPDATE
      SET request_hash = excluded.request_hash, resource_id = excluded.resource_id, created_at = excluded.created_at`;
    return { outcome: 'done', effect: done };
  });
}

/** A claim that stands: of the same request, with its resource, or of another one. */
export type Found = Extract<Claimed<never>, { outcome: 'replayed' | 'reused' }>;

/** What stands under a claim's key; undefined when nothing does, or its time is over. */
export async function findClaim(
  tx: Sql,
  { holder, key, requestHashes, retentionMs }: Claim,
): Promise<Found | undefined> {
  const [row] = await tx<{ requestHash: Buffer; resourceId: string }[]>`
    SELECT request_hash AS "requestHash", resource_id AS "resourceId" FROM idempotency_key
    WHERE api_key_id = ${holder} AND key = ${key}
      AND created_at > clock_timestamp() - ${retentionMs} * interval '1 millisecond'`;
  if (row === undefined) return undefined;
  const isSame = requestHashes.some((hash) => row.requestHash.equals(hash));
  return isSame ? { outcome: 'replayed', resourceId: row.resourceId } : { outcome: 'reused' };
}

/** Whether a key stands, whatever was requested with it. */
export async function hasClaim(
  sql: Sql,
  { holder, key, retentionMs }: Omit<Claim, 'requestHashes'>,
): Promise<boolean> {
  const rows = await sql`
    SELECT FROM idempotency_key
    WHERE api_key_id = ${holder} AND key = ${key}
      AND created_at > clock_timestamp() - ${retentionMs} * interval '1 millisecond'`;
  return rows.length > 0;
}

/**
 * Deletes the claims of a log's submissions from an index on: who sends such a request again has it carried out.
 *
 * @returns how many
 */
export async function dropClaimsFrom(sql: Sql, logId: number, logIndex: number): Promise<number> {
  const result = await sql`
    DELETE FROM idempotency_key k USING submission s
    WHERE s.log_id = ${logId} AND s.log_index >= ${logIndex} AND k.resource_id = s.id`;
  return result.count;
}

/**
 * Deletes idempotency keys past their retention, at most `limit`. Their age is looked at once more as each is deleted:
 * one that is claimed anew meanwhile stays.
 *
 * @returns how many
 */
export async function pruneIdempotencyKeys(sql: Sql, retentionMs: number, limit: number): Promise<number> {
  const isOver = sql`created_at < clock_timestamp() - ${retentionMs}::bigint * interval '1 millisecond'`;
  const result = await sql`
    DELETE FROM idempotency_key WHERE ${isOver} AND (api_key_id, key) IN (
      SELECT api_key_id, key FROM idempotency_key WHERE ${isOver} ORDER BY created_at LIMIT ${limit})`;
  return result.count;
}
