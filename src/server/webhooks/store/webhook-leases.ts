import type { Sql } from '../../database/connect.js';

/**
 * A subscription that this worker has leased. `secrets` are those that sign now, encrypted. `isTakenOver` if the worker before
 * did not release it.
 */
export type LeasedWebhook = {
  id: string;
  lease: number;
  projectId: string;
  url: string;
  secrets: Uint8Array[];
  isFailing: boolean;
  redeliverSince: Date | null;
  isTakenOver: boolean;
};

const due = (sql: Sql) => sql`
  due_at <= clock_timestamp() AND (leased_until IS NULL OR leased_until < clock_timestamp())`;

/**
 * Leases a subscription that is due and not leased.
 *
 * @returns undefined if it is not due or leased by another worker
 */
export async function leaseWebhook(
  sql: Sql,
  id: string,
  leaseMs: number,
): Promise<LeasedWebhook | undefined> {
  const rows = await sql<LeasedWebhook[]>`
    UPDATE webhook w SET lease = w.lease + 1, leased_until = clock_timestamp() + ${leaseMs}::bigint * interval '1 millisecond'
    FROM (SELECT id, leased_until FROM webhook WHERE id = ${id} AND status <> 3 AND ${due(sql)} FOR UPDATE) found
    WHERE w.id = found.id
    RETURNING w.id, lease, project_id AS "projectId", url, failing_since IS NOT NULL AS "isFailing",
      redeliver_since AS "redeliverSince", found.leased_until IS NOT NULL AS "isTakenOver",
      ARRAY[secret] || ARRAY(
        SELECT older FROM unnest(previous_secret || older_secrets, previous_secret_until || older_secrets_until)
          AS signing(older, until)
        WHERE until > clock_timestamp()) AS secrets`;
  return rows[0];
}

/** Renews a lease. Returns false if it has ended: a change of the subscription ends it. */
export async function renewLease(sql: Sql, id: string, lease: number, leaseMs: number): Promise<boolean> {
  const renewed = await sql`
    UPDATE webhook SET leased_until = clock_timestamp() + ${leaseMs}::bigint * interval '1 millisecond'
    WHERE id = ${id} AND lease = ${lease} AND status <> 3`;
  return renewed.count === 1;
}

/** Renews those of these leases that have not ended. Skips locked rows, so that two callers cannot deadlock. */
export async function renewLeases(
  sql: Sql,
  leases: ReadonlyMap<string, number>,
  leaseMs: number,
): Promise<void> {
  await sql`
    UPDATE webhook w SET leased_until = clock_timestamp() + ${leaseMs}::bigint * interval '1 millisecond'
    FROM (SELECT h.id FROM webhook h
          JOIN unnest(${[...leases.keys()]}::text[], ${[...leases.values()]}::bigint[]) AS held(id, lease)
            ON held.id = h.id AND held.lease = h.lease
          WHERE h.leased_until IS NOT NULL FOR UPDATE OF h SKIP LOCKED) standing
    WHERE w.id = standing.id`;
}

/** Ends a lease. @returns the milliseconds until the subscription is due; undefined if nothing is */
export async function releaseWebhook(sql: Sql, id: string, lease: number): Promise<number | undefined> {
  const [row] = await sql<{ due_ms: number | null }[]>`
    SELECT release_webhook(${id}, ${lease}::bigint) AS due_ms`;
  return row?.due_ms ?? undefined;
}

/** Whether a subscription is due and not leased. */
export async function isWebhookDue(sql: Sql, id: string): Promise<boolean> {
  const rows = await sql`SELECT FROM webhook WHERE id = ${id} AND ${due(sql)}`;
  return rows.length === 1;
}

/** Finds subscriptions that are due and not leased, the longest due first. */
export async function findDueWebhooks(sql: Sql, limit: number): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    SELECT id FROM webhook WHERE ${due(sql)} ORDER BY due_at LIMIT ${limit}`;
  return rows.map(({ id }) => id);
}
