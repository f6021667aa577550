import type { Sql } from '../database/connect.js';

/** A subscription that this worker alone sends for now. Secrets are encrypted, those that sign now. */
export type LeasedWebhook = {
  id: string;
  lease: number;
  projectId: string;
  url: string;
  secrets: Uint8Array[];
  isFailing: boolean;
  redeliverSince: Date | null;
};

/**
 * Takes the lease of a subscription for which something is due and nobody else sends.
 *
 * @returns undefined when nothing is due or somebody else has it
 */
export async function leaseWebhook(
  sql: Sql,
  id: string,
  leaseMs: number,
): Promise<LeasedWebhook | undefined> {
  const rows = await sql<LeasedWebhook[]>`
    UPDATE webhook SET lease = lease + 1, leased_until = clock_timestamp() + ${leaseMs}::bigint * interval '1 millisecond'
    WHERE id = ${id} AND status <> 3 AND due_at <= clock_timestamp()
      AND (leased_until IS NULL OR leased_until < clock_timestamp())
    RETURNING id, lease, project_id AS "projectId", url, failing_since IS NOT NULL AS "isFailing",
      redeliver_since AS "redeliverSince",
      ARRAY[secret] || ARRAY(
        SELECT older FROM unnest(previous_secret || older_secrets, previous_secret_until || older_secrets_until)
          AS signing(older, until)
        WHERE until > clock_timestamp()) AS secrets`;
  return rows[0];
}

/** Whether a lease still stands, extended if it does: a change of the subscription ends it. */
export async function renewLease(sql: Sql, id: string, lease: number, leaseMs: number): Promise<boolean> {
  const renewed = await sql`
    UPDATE webhook SET leased_until = clock_timestamp() + ${leaseMs}::bigint * interval '1 millisecond'
    WHERE id = ${id} AND lease = ${lease} AND status <> 3`;
  return renewed.count === 1;
}

/**
 * Extends these leases, as far as they stand. Rows that somebody is writing to are left to the next time, so that two
 * callers cannot wait for each other.
 */
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

/** Ends a lease. @returns in how many milliseconds something is due again; undefined when nothing is */
export async function releaseWebhook(sql: Sql, id: string, lease: number): Promise<number | undefined> {
  const [row] = await sql<{ due_ms: number | null }[]>`
    SELECT release_webhook(${id}, ${lease}::bigint) AS due_ms`;
  return row?.due_ms ?? undefined;
}

/** The subscriptions for which something is due and nobody sends, the longest due first. */
export async function findDueWebhooks(sql: Sql, limit: number): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    SELECT id FROM webhook
    WHERE due_at <= clock_timestamp() AND (leased_until IS NULL OR leased_until < clock_timestamp())
    ORDER BY due_at LIMIT ${limit}`;
  return rows.map(({ id }) => id);
}
