import { encodeTime } from 'ulid';
import { DeliveryStatus } from '../../../../gen/attestation/v1/webhooks_pb.js';
import type { Sql } from '../../database/connect.js';

/**
 * The delivery of an event to a subscription. `transition` is a proto BatchStatus number; it and `submissionId` are
 * null for a test. `occurredAt` is the time of the transition or test; `landed` and `missing` are witness names.
 */
export type DeliveryRow = {
  webhookId: string;
  id: string;
  submissionId: string | null;
  transition: number | null;
  occurredAt: Date;
  landed: string[] | null;
  missing: string[] | null;
  /** Set if the event is about an export; `detail` is its data as JSON then. */
  exportId: string | null;
  detail: string | null;
  /** Proto DeliveryStatus number. */
  status: number;
  attempt: number;
  step: number;
  createdAt: Date;
  nextAttemptAt: Date;
  deliveredAt: Date | null;
};

/** The members of a delivery that its event is built from. */
export type EventSource = Pick<
  DeliveryRow,
  | 'webhookId'
  | 'id'
  | 'submissionId'
  | 'transition'
  | 'occurredAt'
  | 'landed'
  | 'missing'
  | 'exportId'
  | 'detail'
>;

/** The members of a delivery that an attempt needs. */
export type ClaimedDelivery = EventSource & Pick<DeliveryRow, 'attempt' | 'step'>;

const { PENDING, FAILED } = DeliveryStatus;

const claimed = (sql: Sql) => sql`
  d.webhook_id AS "webhookId", d.id, d.submission_id AS "submissionId", d.transition,
  coalesce(t.at, d.created_at) AS "occurredAt", t.landed, t.missing, d.export_id AS "exportId", d.detail,
  d.attempt, d.step`;

const columns = (sql: Sql) => sql`
  ${claimed(sql)}, d.status, d.created_at AS "createdAt", d.next_attempt_at AS "nextAttemptAt",
  d.delivered_at AS "deliveredAt"`;

const withTransition = (sql: Sql) => sql`
  LEFT JOIN batch_transition t ON t.log_id = d.log_id AND t.tree_size = d.tree_size AND t.status = d.transition`;

/**
 * A request to claim deliveries. Times in milliseconds; `ids` are the ids of new deliveries, and their number the
 * limit.
 */
type Claim = {
  webhookId: string;
  lease: number;
  leaseMs: number;
  visibleMs: number;
  ids: readonly string[];
};

/**
 * Claims at most `ids.length` due deliveries, one project token each, inserts rows for new ones, and renews the lease.
 * Each is due again after `visibleMs` unless `recordAttempts` runs before. Returns them in the order in which they were
 * made; none if nothing is due, the project has no tokens, or the lease is lost.
 */
export async function claimDeliveries(sql: Sql, claim: Claim): Promise<ClaimedDelivery[]> {
  const { webhookId, lease, leaseMs, visibleMs, ids } = claim;
  return sql<ClaimedDelivery[]>`
    SELECT ${claimed(sql)}
    FROM claim_webhook_deliveries(${webhookId}, ${lease}::bigint, ${leaseMs}::bigint, ${visibleMs}::bigint,
                                  ${ids.length}::integer, ${[...ids]}::text[]) d ${withTransition(sql)}
    ORDER BY d.id`;
}

/** Makes claimed deliveries due at once that were not attempted, as if they had not been claimed. Skips locked rows. */
export async function returnClaims(
  sql: Sql,
  webhookId: string,
  claims: readonly Pick<ClaimedDelivery, 'id' | 'attempt'>[],
): Promise<void> {
  await sql`
    UPDATE webhook_delivery d SET next_attempt_at = clock_timestamp(), attempt = d.attempt - 1
    FROM (SELECT c.id FROM webhook_delivery c
          JOIN unnest(${claims.map(({ id }) => id)}::text[], ${claims.map(({ attempt }) => attempt)}::integer[])
            AS claim(id, attempt) ON c.id = claim.id AND c.attempt = claim.attempt
          WHERE c.webhook_id = ${webhookId} AND c.status = ${PENDING} FOR UPDATE OF c SKIP LOCKED) left_behind
    WHERE d.webhook_id = ${webhookId} AND d.id = left_behind.id`;
  await sql`
    UPDATE webhook SET due_at = least(due_at, clock_timestamp()) WHERE id = ${webhookId} AND status <> 3`;
}

/**
 * Makes deliveries due at once that a worker claimed under an earlier lease and did not record. They keep the number of that
 * attempt: recorded later, it changes nothing once another was made. Skips locked rows.
 */
export async function reclaimDeliveries(sql: Sql, webhookId: string, visibleMs: number): Promise<void> {
  await sql`
    UPDATE webhook_delivery d SET next_attempt_at = clock_timestamp()
    FROM (SELECT c.id FROM webhook_delivery c
          WHERE c.webhook_id = ${webhookId} AND c.status = ${PENDING} AND c.attempt > 0
            AND c.next_attempt_at > clock_timestamp()
            AND c.next_attempt_at <= clock_timestamp() + ${visibleMs}::bigint * interval '1 millisecond'
            AND NOT EXISTS (SELECT FROM webhook_attempt a WHERE a.delivery_id = c.id AND a.number = c.attempt)
          FOR UPDATE OF c SKIP LOCKED) left_behind
    WHERE d.webhook_id = ${webhookId} AND d.id = left_behind.id`;
}

/** Inserts a test of a subscription, due at once. Runs in the caller's transaction, which locks the subscription. */
export async function insertTestDelivery(tx: Sql, webhookId: string, id: string): Promise<void> {
  await tx`UPDATE webhook SET due_at = clock_timestamp() WHERE id = ${webhookId}`;
  await tx`INSERT INTO webhook_delivery (webhook_id, id) VALUES (${webhookId}, ${id})`;
}

/** Finds a delivery of a subscription. */
export async function findDelivery(
  sql: Sql,
  webhookId: string,
  id: string,
): Promise<DeliveryRow | undefined> {
  const rows = await sql<DeliveryRow[]>`
    SELECT ${columns(sql)} FROM webhook_delivery d ${withTransition(sql)}
    WHERE d.webhook_id = ${webhookId} AND d.id = ${id}`;
  return rows[0];
}

/** Which deliveries to list: those with ids below `before`. `status` is a proto DeliveryStatus number. */
type DeliveryQuery = {
  status: number | undefined;
  submissionId?: string | undefined;
  before: string | undefined;
  limit: number;
};

/** Lists a subscription's deliveries, newest first. */
export async function listDeliveries(
  sql: Sql,
  webhookId: string,
  { status, submissionId, before, limit }: DeliveryQuery,
): Promise<DeliveryRow[]> {
  return sql<DeliveryRow[]>`
    SELECT ${columns(sql)} FROM webhook_delivery d ${withTransition(sql)}
    WHERE d.webhook_id = ${webhookId}
      ${status === undefined ? sql`` : sql`AND d.status = ${status}`}
      ${submissionId === undefined ? sql`` : sql`AND d.submission_id = ${submissionId}`}
      ${before === undefined ? sql`` : sql`AND d.id < ${before}`}
    ORDER BY d.id DESC LIMIT ${limit}`;
}

/** Makes a delivery due on a new retry schedule. Runs in a transaction. @returns whether it exists */
export async function redeliver(tx: Sql, webhookId: string, id: string): Promise<boolean> {
  const updated = await tx`
    UPDATE webhook_delivery SET status = ${PENDING}, step = 0, delivered_at = NULL, next_attempt_at = clock_timestamp()
    WHERE webhook_id = ${webhookId} AND id = ${id}`;
  if (updated.count === 0) return false;
  await tx`UPDATE webhook SET due_at = clock_timestamp() WHERE id = ${webhookId}`;
  return true;
}

/**
 * Requests redelivery of every failed delivery made at or after `since`; the worker does it, in portions. If requests
 * overlap, the earliest `since` applies.
 */
export async function requestRedelivery(sql: Sql, webhookId: string, since: Date): Promise<void> {
  await sql`
    UPDATE webhook SET redeliver_since = least(redeliver_since, ${since}), due_at = clock_timestamp()
    WHERE id = ${webhookId}`;
}

/** Counts the deliveries that `requestRedelivery` would resend now, up to `most`. */
export async function countFailed(sql: Sql, webhookId: string, since: Date, most: number): Promise<number> {
  const [row] = await sql<{ n: number }[]>`
    SELECT count(*) AS n FROM (
      SELECT FROM webhook_delivery WHERE webhook_id = ${webhookId} AND ${isRedelivered(sql, since)} LIMIT ${most}) f`;
  return row?.n ?? 0;
}

/** Excludes tests that were resent: as a test fails at its first attempt, it would be resent for ever. */
function isRedelivered(sql: Sql, since: Date) {
  return sql`
    status = ${FAILED} AND id >= ${firstId(since.getTime() - CLOCKS_APART_MS)} AND created_at >= ${since}
    AND (transition IS NOT NULL OR attempt = 1)`;
}

/**
 * Redelivers the next portion of a request, oldest first, and completes the request with the last. The lock keeps a
 * concurrent request from being completed with it.
 */
export async function redeliverFailed(tx: Sql, webhookId: string, since: Date, limit: number): Promise<void> {
  await tx`SELECT FROM webhook WHERE id = ${webhookId} FOR UPDATE`;
  const updated = await tx`
    UPDATE webhook_delivery SET status = ${PENDING}, step = 0, next_attempt_at = clock_timestamp()
    WHERE webhook_id = ${webhookId} AND id IN (
      SELECT id FROM webhook_delivery
      WHERE webhook_id = ${webhookId} AND ${isRedelivered(tx, since)}
      ORDER BY id LIMIT ${limit} FOR UPDATE SKIP LOCKED)`;
  if (updated.count === limit) return;
  await tx`UPDATE webhook SET redeliver_since = NULL WHERE id = ${webhookId} AND redeliver_since >= ${since}`;
}

/**
 * Deletes deliveries older than `historyMs` and their attempts, at most `limit`. Costs a look-up per subscription.
 *
 * @returns the number of deliveries deleted
 */
export async function pruneDeliveries(sql: Sql, historyMs: number, limit: number): Promise<number> {
  const [clock] = await sql<{ before: Date }[]>`
    SELECT clock_timestamp() - ${historyMs}::bigint * interval '1 millisecond' AS before`;
  if (clock === undefined) throw new Error('the database returned no time');
  const { before } = clock;
  const [row] = await sql<{ n: number }[]>`
    WITH old AS (
      DELETE FROM webhook_delivery WHERE ctid IN (
        SELECT d.ctid FROM webhook w CROSS JOIN LATERAL (
          SELECT ctid FROM webhook_delivery
          WHERE webhook_id = w.id AND id < ${firstId(before.getTime())} AND created_at < ${before}
          LIMIT ${limit} FOR UPDATE SKIP LOCKED) d
        LIMIT ${limit})
      RETURNING id),
    attempts AS (DELETE FROM webhook_attempt a USING old WHERE a.delivery_id = old.id)
    SELECT count(*) AS n FROM old`;
  return row?.n ?? 0;
}

/** The largest difference between a process's clock, which is in ids, and the database's. */
const CLOCKS_APART_MS = 3_600_000;
const ULID_TIME_LENGTH = 10;
const ULID_MAX_MS = 2 ** 48 - 1;

/** Returns the prefix of delivery ids made at a time in Unix milliseconds; ids of earlier ones are less. */
function firstId(timeMs: number): string {
  return `dlv_${encodeTime(Math.min(Math.max(0, timeMs), ULID_MAX_MS), ULID_TIME_LENGTH)}`;
}
