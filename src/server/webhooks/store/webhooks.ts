import { WebhookStatus } from '../../../../gen/attestation/v1/webhooks_pb.js';
import type { Pool, Sql } from '../../database/connect.js';

/**
 * A subscription. Enumerations are proto numbers: Environment, EventType, WebhookStatus. Secrets are encrypted;
 * `previousSecret` still signs until `previousSecretUntil`.
 */
export type WebhookRow = {
  id: string;
  number: number;
  projectId: string;
  environment: number;
  url: string;
  events: number[];
  status: number;
  disabledReason: string | null;
  secret: Uint8Array;
  previousSecret: Uint8Array | null;
  previousSecretUntil: Date | null;
  createdAt: Date;
  failingSince: Date | null;
};

/** The owner of subscriptions: a project in one environment. */
type WebhookOwner = { projectId: string; environment: number };

const { ACTIVE, DISABLED, DELETED } = WebhookStatus;

const columns = (sql: Sql) => sql`
  w.id, w.number, w.project_id AS "projectId", w.environment, w.url, w.events, w.status,
  w.disabled_reason AS "disabledReason", w.secret, w.previous_secret AS "previousSecret",
  w.previous_secret_until AS "previousSecretUntil", w.created_at AS "createdAt", w.failing_since AS "failingSince"`;

/**
 * Inserts a subscription unless its owner has `max` already. Runs in the caller's transaction.
 *
 * @returns whether it was inserted
 */
export async function insertWebhook(
  tx: Sql,
  webhook: WebhookOwner & Pick<WebhookRow, 'id' | 'url' | 'events' | 'secret'>,
  max: number,
): Promise<boolean> {
  const { id, projectId, environment, url, events, secret } = webhook;
  await tx`SELECT FROM project WHERE id = ${projectId} FOR NO KEY UPDATE`;
  const inserted = await tx`
    INSERT INTO webhook (id, project_id, environment, url, events, secret)
    SELECT ${id}, ${projectId}, ${environment}, ${url}, ${events}, ${secret}
    WHERE (SELECT count(*) FROM webhook
           WHERE project_id = ${projectId} AND environment = ${environment} AND status <> ${DELETED}) < ${max}`;
  return inserted.count === 1;
}

/** Finds the owner's subscription by id, a deleted one only if `withDeleted`. Locks it if `isLocked`. */
export async function findWebhook(
  sql: Sql,
  { projectId, environment }: WebhookOwner,
  id: string,
  { withDeleted = false, isLocked = false } = {},
): Promise<WebhookRow | undefined> {
  const rows = await sql<WebhookRow[]>`
    SELECT ${columns(sql)} FROM webhook w
    WHERE w.id = ${id} AND w.project_id = ${projectId} AND w.environment = ${environment}
      AND (w.status <> ${DELETED} OR ${withDeleted}) ${isLocked ? sql`FOR UPDATE` : sql``}`;
  return rows[0];
}

/** Lists the owner's subscriptions with numbers below `before`, newest first. */
export async function listWebhooks(
  sql: Sql,
  { projectId, environment }: WebhookOwner,
  { before, limit }: { before: number | undefined; limit: number },
): Promise<WebhookRow[]> {
  return sql<WebhookRow[]>`
    SELECT ${columns(sql)} FROM webhook w
    WHERE w.project_id = ${projectId} AND w.environment = ${environment} AND w.status <> ${DELETED}
      ${before === undefined ? sql`` : sql`AND w.number < ${before}`}
    ORDER BY w.number DESC LIMIT ${limit}`;
}

/** The members to change. `status` is active or disabled. */
type WebhookChange = {
  url: string | undefined;
  events: number[] | undefined;
  status: number | undefined;
  disabledReason: string;
};

/**
 * Changes a subscription. One that becomes active again starts over: without failures, and with transitions from then
 * on only. A new URL resets the failures too. A new URL or status ends the lease; the worker notices within a second.
 *
 * @returns whether the subscription exists
 */
export async function updateWebhook(
  sql: Sql,
  { projectId, environment }: WebhookOwner,
  id: string,
  { url, events, status, disabledReason }: WebhookChange,
): Promise<boolean> {
  const updated = await sql`
    UPDATE webhook SET
      url = coalesce(${url ?? null}, url),
      events = coalesce(${events ?? null}::smallint[], events),
      status = coalesce(${status ?? null}::smallint, status),
      disabled_reason = CASE WHEN ${status ?? null}::smallint IS NULL THEN disabled_reason
        WHEN ${status ?? null}::smallint = ${ACTIVE} THEN NULL
        WHEN status = ${DISABLED} THEN disabled_reason ELSE ${disabledReason} END,
      active_since = CASE WHEN ${status ?? null}::smallint = ${ACTIVE} AND status = ${DISABLED}
        THEN clock_timestamp() ELSE active_since END,
      failing_since = CASE WHEN ${status ?? null}::smallint = ${ACTIVE} AND status = ${DISABLED} OR url <> ${url ?? null}
        THEN NULL ELSE failing_since END,
      lease = CASE WHEN status <> ${status ?? null} OR url <> ${url ?? null} THEN lease + 1 ELSE lease END,
      leased_until = CASE WHEN status <> ${status ?? null} OR url <> ${url ?? null} THEN NULL ELSE leased_until END,
      due_at = clock_timestamp()
    WHERE id = ${id} AND project_id = ${projectId} AND environment = ${environment} AND status <> ${DELETED}`;
  return updated.count === 1;
}

/** Deletes a subscription, its secrets and its lease. @returns whether it existed */
export async function deleteWebhook(
  sql: Sql,
  { projectId, environment }: WebhookOwner,
  id: string,
): Promise<boolean> {
  const updated = await sql`
    UPDATE webhook SET status = ${DELETED}, deleted_at = clock_timestamp(), due_at = NULL, disabled_reason = NULL,
      failing_since = NULL, redeliver_since = NULL, lease = lease + 1, leased_until = NULL,
      secret = '', previous_secret = NULL, previous_secret_until = NULL,
      older_secrets = '{}', older_secrets_until = '{}'
    WHERE id = ${id} AND project_id = ${projectId} AND environment = ${environment} AND status <> ${DELETED}`;
  return updated.count === 1;
}

/** The most secrets that still sign besides the current and the previous one; the newest are kept. */
const MAX_OLDER_SECRETS = 4;

/**
 * Sets a new secret. The previous one keeps signing for `overlapMs`, and older ones until their own end. Ends the
 * lease, since its worker signs with the secrets it leased.
 *
 * @returns whether the subscription exists
 */
export async function rotateWebhookSecret(
  sql: Sql,
  { projectId, environment }: WebhookOwner,
  id: string,
  secret: Uint8Array,
  overlapMs: number,
): Promise<boolean> {
  const updated = await sql`
    UPDATE webhook SET previous_secret = secret, secret = ${secret}, lease = lease + 1, leased_until = NULL,
      previous_secret_until = clock_timestamp() + ${overlapMs}::bigint * interval '1 millisecond',
      (older_secrets, older_secrets_until) = (
        SELECT coalesce(array_agg(o.secret), '{}'), coalesce(array_agg(o.until), '{}') FROM (
          SELECT * FROM unnest(older_secrets || previous_secret, older_secrets_until || previous_secret_until)
            AS signing(secret, until)
          WHERE until > clock_timestamp() ORDER BY until DESC LIMIT ${MAX_OLDER_SECRETS}) o)
    WHERE id = ${id} AND project_id = ${projectId} AND environment = ${environment} AND status <> ${DELETED}`;
  return updated.count === 1;
}

/**
 * Disables an active subscription that was not changed since `lease`.
 *
 * @returns its project; undefined if it was changed or is not active
 */
export async function disableWebhook(
  sql: Sql,
  id: string,
  lease: number,
  reason: string,
): Promise<string | undefined> {
  const rows = await sql<{ projectId: string }[]>`
    UPDATE webhook SET status = ${DISABLED}, disabled_reason = ${reason}
    WHERE id = ${id} AND lease = ${lease} AND status = ${ACTIVE} RETURNING project_id AS "projectId"`;
  return rows[0]?.projectId;
}

/** Deletes the rows of subscriptions that were deleted longer than `historyMs` ago. */
export async function pruneWebhooks(pool: Pool, historyMs: number): Promise<void> {
  await pool`
    DELETE FROM webhook w
    WHERE status = ${DELETED} AND deleted_at < clock_timestamp() - ${historyMs}::bigint * interval '1 millisecond'
      AND NOT EXISTS (SELECT FROM webhook_delivery d WHERE d.webhook_id = w.id)`;
}
