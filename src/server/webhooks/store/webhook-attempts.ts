import { DeliveryStatus } from '../../../../gen/attestation/v1/webhooks_pb.js';
import type { Sql } from '../../database/connect.js';

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
  /** The delivery's step when it was claimed. */
  step: number;
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
 * attempt that is not the newest of its delivery, or was recorded before, changes nothing else. Tests, and attempts made before
 * the subscription was changed, do not count for the endpoint's health.
 *
 * @returns the subscriptions with a failure
 */
export async function recordAttempts(
  sql: Sql,
  attempts: readonly RecordedAttempt[],
): Promise<FailingWebhook[]> {
  // Locked in the order of ids, so that two callers cannot deadlock.
  const ordered = attempts.toSorted((a, b) => (a.deliveryId < b.deliveryId ? -1 : 1));
  const rows = JSON.stringify(ordered.map(toJson));
  return sql<FailingWebhook[]>`
    SELECT id, lease, failing_ms AS "failingMs"
    FROM record_webhook_attempts(${rows}::text::json, ${PENDING}::smallint, ${DELIVERED}::smallint)`;
}

/** One JSON text takes the driver far less time than ten arrays. */
function toJson(attempt: RecordedAttempt): object {
  const {
    webhookId,
    deliveryId,
    number,
    step,
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
    step,
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
