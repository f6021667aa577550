import { setTimeout as delay } from 'node:timers/promises';
import { AuditAction, AuditActorKind } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import { DeliveryStatus } from '../../../../gen/attestation/v1/webhooks_pb.js';
import { insertAuditEntry } from '../../admin/store/audit.js';
import type { Pool } from '../../database/connect.js';
import { retryWhileUnavailable } from '../../database/database-errors.js';
import { storableText } from '../../database/storable-text.js';
import { type RecordedAttempt, recordAttempts } from '../store/webhook-attempts.js';
import type { ClaimedDelivery } from '../store/webhook-deliveries.js';
import { disableWebhook } from '../store/webhooks.js';
import { retryDelayMs } from './retry-schedule.js';
import type { SendResult } from './send.js';

const DISABLE_AFTER_MS = 5 * 24 * 3_600_000;
const GONE_REASON = 'the endpoint answered 410 Gone';
const FAILING_REASON = 'every attempt of five days has failed';
/** An error may quote the receiver, such as all names in its certificate. */
const MAX_ERROR_LENGTH = 500;
const MAX_ROWS = 500;
/** Attempts are batched for this long: no caller waits for a record, and a statement costs as much as sending ten events. */
const GATHER_MS = 10;

/** An attempt: its subscription's lease, where and when it was sent, and a random number in [0, 1). */
type Attempt = { lease: number; url: string; at: Date; random: number };

/** The record of an attempt and its delivery's next state. Test deliveries are not retried. */
export function attemptRecord(
  row: ClaimedDelivery,
  { lease, url, at, random }: Attempt,
  result: SendResult,
): RecordedAttempt {
  const isDelivered = result.outcome === 'delivered';
  const isTest = row.transition === null;
  const isOver = isDelivered || isTest;
  const retryAfterMs = isOver ? undefined : retryDelayMs(row.step, random, result.retryAfterMs);
  const failed = retryAfterMs === undefined ? DeliveryStatus.FAILED : DeliveryStatus.PENDING;
  return {
    webhookId: row.webhookId,
    deliveryId: row.id,
    number: row.attempt,
    step: row.step,
    lease,
    url,
    at,
    durationMs: result.durationMs,
    statusCode: result.status ?? null,
    error: isDelivered ? null : storableText((result.error ?? 'failed').slice(0, MAX_ERROR_LENGTH)),
    answer: result.status === undefined ? null : storableText(result.answer),
    status: isDelivered ? DeliveryStatus.DELIVERED : failed,
    isGone: result.gone === true && !isTest,
    retryAfterMs: retryAfterMs ?? null,
  };
}

/** The dependencies of storing attempts. `observe` gets the counts of each statement. */
type AttemptDeps = { pool: Pool; newAuditId: () => string; observe: (counts: AttemptCounts) => void };

/** Attempts by outcome, and the subscriptions disabled as a result. */
export type AttemptCounts = { delivered: number; failed: number; disabled: number };

/** Stores attempts, then disables subscriptions that answered 410 or have failed for five days. */
async function storeAttempts(deps: AttemptDeps, attempts: readonly RecordedAttempt[]): Promise<void> {
  const failing = await recordAttempts(deps.pool, attempts);
  const given = new Map<string, Disabling>();
  for (const { id, lease, failingMs } of failing)
    if (failingMs >= DISABLE_AFTER_MS) given.set(id, { lease, reason: FAILING_REASON });
  for (const { webhookId, lease, isGone } of attempts)
    if (isGone) given.set(webhookId, { lease, reason: GONE_REASON });
  let disabled = 0;
  for (const [id, disabling] of given) if (await disable(deps, id, disabling)) disabled++;
  const delivered = attempts.filter(({ status }) => status === DeliveryStatus.DELIVERED).length;
  deps.observe({ delivered, failed: attempts.length - delivered, disabled });
}

type Disabling = { lease: number; reason: string };

/** Returns false if the subscription was inactive, or was changed or leased again since the attempts. */
async function disable(
  { pool, newAuditId }: AttemptDeps,
  id: string,
  { lease, reason }: Disabling,
): Promise<boolean> {
  return pool.begin(async (tx) => {
    const projectId = await disableWebhook(tx, id, lease, reason);
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

/** Records an attempt; resolves once it is durable. */
export type AttemptRecorder = (attempt: RecordedAttempt) => Promise<void>;

/**
 * Batches the attempts of a few milliseconds, or of a statement in flight, into one statement. Retries for some seconds
 * while the database is unavailable, since the receiver already got the events.
 */
export function createAttemptRecorder(deps: AttemptDeps): AttemptRecorder {
  type Waiting = { attempt: RecordedAttempt; resolve: () => void; reject: (error: unknown) => void };
  const queue: Waiting[] = [];
  let isBusy = false;

  const flush = async () => {
    isBusy = true;
    while (queue.length > 0) {
      if (queue.length < MAX_ROWS) await delay(GATHER_MS);
      const taken = queue.splice(0, MAX_ROWS);
      const attempts = taken.map(({ attempt }) => attempt);
      try {
        await retryWhileUnavailable(() => storeAttempts(deps, attempts));
        for (const { resolve } of taken) resolve();
      } catch (error) {
        for (const { reject } of taken) reject(error);
      }
    }
    isBusy = false;
  };
  return (attempt) =>
    new Promise((resolve, reject) => {
      queue.push({ attempt, resolve, reject });
      if (!isBusy) void flush();
    });
}
