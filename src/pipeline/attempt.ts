import { AuditAction, AuditActorKind } from '../../gen/attestation/admin/v1/audit_pb.js';
import { DeliveryStatus } from '../../gen/attestation/v1/webhooks_pb.js';
import { insertAuditEntry } from '../store/audit.js';
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

/** What records of attempts are made with. */
export type AttemptDeps = { pool: Pool; newAuditId: () => string };

/** How many attempts came to what, and how many subscriptions were disabled for it. */
export type AttemptCounts = { delivered: number; failed: number; disabled: number };

/** Records attempts, then disables the subscriptions that are gone, or of which nothing has succeeded for five days. */
export async function settleAttempts(
  deps: AttemptDeps,
  attempts: readonly RecordedAttempt[],
): Promise<AttemptCounts> {
  const failing = await recordAttempts(deps.pool, attempts);
  const given = new Map(
    failing.filter(({ failingMs }) => failingMs >= DISABLE_AFTER_MS).map(({ id }) => [id, FAILING_REASON]),
  );
  for (const { webhookId, isGone } of attempts) if (isGone) given.set(webhookId, GONE_REASON);
  let disabled = 0;
  for (const [id, reason] of given) if (await disable(deps, id, reason)) disabled++;
  const delivered = attempts.filter(({ status }) => status === DeliveryStatus.DELIVERED).length;
  return { delivered, failed: attempts.length - delivered, disabled };
}

/** Says whether it was active until now. */
async function disable({ pool, newAuditId }: AttemptDeps, id: string, reason: string): Promise<boolean> {
  return pool.begin(async (tx) => {
    const projectId = await disableWebhook(tx, id, reason);
    if (projectId === undefined) return false;
    await insertAuditEntry(tx, {
      id: newAuditId(),
      projectId,
      actorKind: AuditActorKind.SYSTEM,
      actorId: 'worker',
      action: AuditAction.WEBHOOK_DISABLED,
      resourceId: id,
      requestId: null,
      detail: { reason },
    });
    return true;
  });
}
