import { DeliveryStatus } from '../../gen/attestation/v1/webhooks_pb.js';
import type { Pool } from '../store/connect.js';
import { type RecordedAttempt, recordAttempts } from '../store/webhook-attempts.js';
import type { DeliveryRow } from '../store/webhook-deliveries.js';
import { disableWebhook } from '../store/webhooks.js';
import type { SendResult } from '../webhook/send.js';
import { retryDelayMs } from './retry-schedule.js';

const DISABLE_AFTER_MS = 5 * 24 * 3_600_000;
const GONE_REASON = 'the endpoint answered 410 Gone';
const FAILING_REASON = 'every attempt of five days has failed';

/**
 * What follows from an attempt for its delivery. A test is tried once.
 *
 * @param at when it was sent
 * @param random in [0, 1)
 */
export function attemptOf(row: DeliveryRow, at: Date, result: SendResult, random: number): RecordedAttempt {
  const isDelivered = result.outcome === 'delivered';
  const isTest = row.transition === null;
  const isOver = isDelivered || isTest || result.gone === true;
  const retryAfterMs = isOver ? undefined : retryDelayMs(row.step, random, result.retryAfterMs);
  const failed = retryAfterMs === undefined ? DeliveryStatus.FAILED : DeliveryStatus.PENDING;
  return {
    webhookId: row.webhookId,
    deliveryId: row.id,
    number: row.attempt,
    at,
    durationMs: result.durationMs,
    statusCode: result.status ?? null,
    error: isDelivered ? null : storable(result.error ?? 'failed'),
    answer: result.status === undefined ? null : storable(result.answer),
    status: isDelivered ? DeliveryStatus.DELIVERED : failed,
    isGone: result.gone === true && !isTest,
    retryAfterMs: retryAfterMs ?? null,
  };
}

/** Text as Postgres takes it: without U+0000 and lone surrogates. */
function storable(text: string): string {
  return Buffer.from(text.replaceAll('\0', '\ufffd'), 'utf8').toString('utf8');
}

/** Records attempts, then disables the subscriptions that are gone, or of which nothing has succeeded for five days. */
export async function settleAttempts(pool: Pool, attempts: readonly RecordedAttempt[]): Promise<void> {
  const failing = await recordAttempts(pool, attempts);
  const given = new Map(
    failing.filter(({ failingMs }) => failingMs >= DISABLE_AFTER_MS).map(({ id }) => [id, FAILING_REASON]),
  );
  for (const { webhookId, isGone } of attempts) {
    if (isGone) given.set(webhookId, GONE_REASON);
  }
  for (const [id, reason] of given) await disableWebhook(pool, id, reason);
}
