import { DeliveryStatus } from '../../../../gen/attestation/v1/webhooks_pb.js';
import type { Sql } from '../database/connect.js';

/** One attempt; `url` is null if it was not recorded, `answer` is the first 2 KiB of the response as text. */
export type AttemptRow = {
  deliveryId: string;
  number: number;
  url: string | null;
  at: Date;
  durationMs: number;
  statusCode: number | null;
  error: string | null;
  answer: string | null;
};

/** An attempt and its result for the delivery. */
export type RecordedAttempt = AttemptRow & {
  webhookId: string;
  /** The subscription's lease under which it was made. */
  lease: number;
  /** The delivery's status after it, a proto DeliveryStatus number. */
  status: number;
  /** Whether the receiver wants no more events. */
  isGone: boolean;
  /** The time of the retry; null unless the delivery is pending. */
  retryAfterMs: number | null;
};

const { PENDING, DELIVERED } = DeliveryStatus;

/** A subscription that failed under a lease. `failingMs` is the time since its first failure without a success after it. */
type FailingWebhook = { id: string; lease: number; failingMs: number };

/**
 * Records attempts, the status of their deliveries, and whether their subscriptions are failing, in one statement. An
 * attempt that is not the newest of its delivery is stored and changes nothing else. Tests, and attempts made before
 * the subscription was changed, do not count for the endpoint's health.
 *
 * @returns the subscriptions with a failure
 */
export async function recordAttempts(
  sql: Sql,
  attempts: readonly RecordedAttempt[],
): Promise<FailingWebhook[]> {
  const rows = JSON.stringify(attempts.map(toJson));
  return sql<FailingWebhook[]>`
    WITH made AS (
      SELECT * FROM json_to_recordset(${rows}::text::json)
      AS a(webhook_id text, delivery_id text, number integer, lease bigint, at timestamptz, duration_ms integer, status_code smallint,
           error text, answer text, url text, status smallint, retry_ms bigint)),
    kept AS (
      INSERT INTO webhook_attempt
      SELECT delivery_id, number, at, duration_ms, status_code, error, answer, url FROM made ON CONFLICT DO NOTHING),
    moved AS (
      UPDATE webhook_delivery d SET
        status = m.status,
        step = CASE WHEN m.status = ${DELIVERED} THEN d.step ELSE d.step + 1 END,
        delivered_at = CASE WHEN m.status = ${DELIVERED} THEN clock_timestamp() END,
        next_attempt_at = CASE WHEN m.retry_ms IS NULL THEN d.next_attempt_at
                               ELSE clock_timestamp() + m.retry_ms * interval '1 millisecond' END
      FROM made m
      WHERE d.webhook_id = m.webhook_id AND d.id = m.delivery_id AND d.attempt = m.number AND d.status = ${PENDING}
      RETURNING d.webhook_id, m.lease, d.status, d.transition),
    health AS (
      SELECT webhook_id, lease, bool_or(status = ${DELIVERED}) AS any_delivered,
        bool_or(status <> ${DELIVERED}) AS any_failed
      FROM moved WHERE transition IS NOT NULL GROUP BY webhook_id, lease),
    locked AS (
      SELECT w.id, h.any_delivered, h.any_failed FROM webhook w JOIN health h ON h.webhook_id = w.id AND h.lease = w.lease
      WHERE h.any_failed OR w.failing_since IS NOT NULL ORDER BY w.id FOR UPDATE OF w)
    UPDATE webhook w
    SET failing_since = CASE WHEN l.any_delivered THEN NULL ELSE coalesce(w.failing_since, clock_timestamp()) END
    FROM locked l WHERE w.id = l.id
    RETURNING w.id, w.lease, coalesce(extract(epoch FROM clock_timestamp() - w.failing_since) * 1000, 0)::float8 AS "failingMs"`;
}

/** One JSON text takes the driver far less time than ten arrays. */
function toJson(attempt: RecordedAttempt): object {
  const {
    webhookId,
    deliveryId,
    number,
    url,
    lease,
    at,
    durationMs,
    statusCode,
    error,
    answer,
    status,
    retryAfterMs,
  } = attempt;
  return {
    webhook_id: webhookId,
    delivery_id: deliveryId,
    number,
    url,
    lease,
    at,
    duration_ms: durationMs,
    status_code: statusCode,
    error,
    answer,
    status,
    retry_ms: retryAfterMs,
  };
}

/** A delivery that is resent has any number of attempts. */
const MAX_SHOWN = 50;

/** Lists the last 50 attempts of each delivery, in order, with the response text of the last `answers` only. */
export async function listAttempts(
  sql: Sql,
  deliveryIds: readonly string[],
  answers: number = MAX_SHOWN,
): Promise<AttemptRow[]> {
  return sql<AttemptRow[]>`
    SELECT a.delivery_id AS "deliveryId", a.number, a.url, a.at, a.duration_ms AS "durationMs", a.status_code AS "statusCode",
      a.error, CASE WHEN a.nth <= ${answers} THEN a.answer END AS answer
    FROM unnest(${[...deliveryIds]}::text[]) d(id) CROSS JOIN LATERAL (
      SELECT *, row_number() OVER (ORDER BY number DESC) AS nth FROM webhook_attempt
      WHERE delivery_id = d.id ORDER BY number DESC LIMIT ${MAX_SHOWN}) a
    ORDER BY a.delivery_id, a.number`;
}
