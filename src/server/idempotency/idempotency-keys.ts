import type { Pool, Sql } from '../database/connect.js';

/** A claim of an idempotency key by a request. */
export type Claim = {
  /** The owner of the key: the id of an API key, or `admin`. */
  holder: string;
  key: string;
  /** Keyed hashes of the request, under the newest key first; any of them means the same request. */
  requestHashes: readonly Uint8Array[];
  /** How long a claim is valid. */
  retentionMs: number;
};

/** The result of a transaction: its effect, or the error for the caller, after which it is rolled back. */
export type Decision<T> = { effect: T } | { refusal: Error };

/** The result of a claim: what was decided, the resource of an earlier request, or neither. */
type ClaimResult<T> =
  | ({ outcome: 'done' } & Decision<T>)
  | { outcome: 'replayed'; resourceId: string }
  | { outcome: 'reused' }
  | { outcome: 'busy' };

/**
 * Runs an effect and records the claim in one transaction; a refusal leaves the key free. Runs nothing if the key was claimed before, and does not
 * wait for a transaction that is claiming it. Lock and rows are those of `append_submissions`: a key is valid once
 * for all RPCs.
 *
 * @param decide runs at most once per key; `resourceId` is returned to replays
 */
export function runClaimed<T extends { resourceId: string }>(
  pool: Pool,
  claim: Claim,
  decide: (tx: Sql) => Promise<Decision<T>>,
): Promise<ClaimResult<T>> {
  const { holder, key } = claim;
  return pool.begin(async (tx): Promise<ClaimResult<T>> => {
    const [lock] = await tx<{ taken: boolean }[]>`
      SELECT pg_try_advisory_xact_lock(hashtextextended(${holder} || ' ' || ${key}, 0)) AS taken`;
    if (lock?.taken !== true) return { outcome: 'busy' };
    const earlier = await findClaim(tx, claim);
    if (earlier !== undefined) return earlier;
    const decided = await decide(tx);
    if ('refusal' in decided) return { outcome: 'done', ...decided };
    await tx`
      INSERT INTO idempotency_key (api_key_id, key, request_hash, resource_id, created_at)
      VALUES (${holder}, ${key}, ${claim.requestHashes[0] ?? null}, ${decided.effect.resourceId}, clock_timestamp())
      ON CONFLICT ON CONSTRAINT idempotency_key_pkey DO UPDATE
      SET request_hash = excluded.request_hash, resource_id = excluded.resource_id, created_at = excluded.created_at`;
    return { outcome: 'done', ...decided };
  });
}

/** An earlier claim: of the same request, with its resource, or of another request. */
export type EarlierClaim = Extract<ClaimResult<never>, { outcome: 'replayed' | 'reused' }>;

/**
 * Looks up an earlier claim of the key. Returns undefined if there is none or it has expired. What the claim's request
 * stored is as durable as a write once this statement's transaction has committed (`confirm_durable`).
 */
export async function findClaim(
  tx: Sql,
  { holder, key, requestHashes, retentionMs }: Claim,
): Promise<EarlierClaim | undefined> {
  const [row] = await tx<ClaimRow[]>`
    SELECT request_hash AS "requestHash", resource_id AS "resourceId", confirm_durable() FROM idempotency_key
    WHERE api_key_id = ${holder} AND key = ${key}
      AND created_at > clock_timestamp() - ${retentionMs} * interval '1 millisecond'`;
  return row && compareClaim(row, requestHashes);
}

type ClaimRow = { requestHash: Buffer; resourceId: string };

function compareClaim(row: ClaimRow, requestHashes: readonly Uint8Array[]): EarlierClaim {
  const isSame = requestHashes.some((hash) => row.requestHash.equals(hash));
  return isSame ? { outcome: 'replayed', resourceId: row.resourceId } : { outcome: 'reused' };
}

/** {@link findClaim} for many requests of one holder. Returns the claims that exist by the requests. */
export async function findClaims<R extends Pick<Claim, 'key' | 'requestHashes'>>(
  tx: Sql,
  { holder, retentionMs }: Pick<Claim, 'holder' | 'retentionMs'>,
  requests: readonly R[],
): Promise<Map<R, EarlierClaim>> {
  const keys = [...new Set(requests.map(({ key }) => key))];
  const rows = await tx<(ClaimRow & { key: string })[]>`
    SELECT k.key, k.request_hash AS "requestHash", k.resource_id AS "resourceId", (SELECT confirm_durable())
    FROM unnest(${keys}::text[]) AS u(key)
    CROSS JOIN LATERAL (
      SELECT * FROM idempotency_key k WHERE k.api_key_id = ${holder} AND k.key = u.key LIMIT 1
    ) k
    WHERE k.created_at > clock_timestamp() - ${retentionMs} * interval '1 millisecond'`;
  const found = new Map(rows.map((row) => [row.key, row]));
  return new Map(
    requests.flatMap((request) => {
      const row = found.get(request.key);
      return row === undefined ? [] : [[request, compareClaim(row, request.requestHashes)] as const];
    }),
  );
}

/** Returns whether a key has a valid claim, of any request. */
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
 * Deletes the claims of a log's submissions from an index on, so that retries of these requests run again.
 *
 * @returns how many
 */
export async function deleteClaimsFrom(sql: Sql, logId: number, logIndex: number): Promise<number> {
  const result = await sql`
    DELETE FROM idempotency_key k USING submission s
    WHERE s.log_id = ${logId} AND s.log_index >= ${logIndex} AND k.resource_id = s.id`;
  return result.count;
}

/**
 * Deletes expired idempotency keys, at most `limit`. Checks the age again on deletion: a key that was claimed again in
 * between stays.
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
