/**
 * Consumes: a subscription's due deliveries: retries, and ranges of events that have no rows yet.
 * Commit point: the statement that records an attempt.
 * Emits: nothing; the tables hold the time of the next delivery.
 * A crash leaves: deliveries without a record of their attempt. They are due again once another worker takes the lease over,
 * and the receiver may get the event twice, with the same id.
 */

import { isDatabaseUnavailable } from '../../database/database-errors.js';
import { LEASE_MS } from '../../jobs/lease.js';
import { decryptSecret } from '../../keys/encryption.js';
import { DONE, type Outcome, retryAfter } from '../../queue/outcome.js';
import {
  type ClaimedDelivery,
  claimDeliveries,
  reclaimDeliveries,
  redeliverFailed,
  returnClaims,
} from '../store/webhook-deliveries.js';
import { type LeasedWebhook, leaseWebhook, releaseWebhook, renewLease } from '../store/webhook-leases.js';
import { attemptRecord } from './attempt.js';
import { type ConcurrencyChange, type DeliveryDeps, runDeliveries } from './delivery-loop.js';
import { eventText } from './event.js';
import type { SendResult, WebhookRequest } from './send.js';
import { findSecretBytes } from './sign.js';
import type { Webhooks } from './webhook-stage.js';

/** Visibility timeout of a claimed delivery: one attempt, and its record while the database is unavailable. */
const VISIBLE_MS = 60_000;
/** A delivery due sooner is waited for in the queue, not in the tables. */
const SOON_MS = 1_000;
const REDELIVER_ROWS = 1_000;
const BUSY_MS = 1_000;
const FIRST_CONCURRENCY = 4;
const MAX_CONCURRENCY = 32;
/** A slower attempt halves the concurrency limit. */
const SLOW_MS = 1_000;
/** A faster endpoint gains nothing from more concurrency, and each request costs a connection. */
const FAST_MS = 20;

/** Sends the due deliveries of one subscription for a limited time. */
export async function deliver({ webhooks }: { webhooks: Webhooks }, webhookId: string): Promise<Outcome> {
  if (webhooks.active.size >= webhooks.maxActive) return retryAfter(BUSY_MS);
  const webhook = await leaseWebhook(webhooks.pool, webhookId, LEASE_MS);
  if (webhook === undefined) return DONE;
  webhooks.active.set(webhookId, webhook.lease);
  try {
    if (webhook.isTakenOver) await reclaimDeliveries(webhooks.pool, webhookId, VISIBLE_MS);
    await startRedelivery(webhooks, webhook);
    await sendDue(webhooks, webhook);
  } finally {
    if (webhooks.active.get(webhookId) === webhook.lease) webhooks.active.delete(webhookId);
  }
  const dueMs = await releaseWebhook(webhooks.pool, webhookId, webhook.lease);
  return dueMs !== undefined && dueMs < SOON_MS && !webhooks.stopping.aborted ? retryAfter(dueMs) : DONE;
}

async function startRedelivery({ pool }: Webhooks, { id, redeliverSince }: LeasedWebhook): Promise<void> {
  if (redeliverSince === null) return;
  await pool.begin((tx) => redeliverFailed(tx, id, redeliverSince, REDELIVER_ROWS));
}

/** Sends deliveries at the concurrency that the endpoint sustains, one at a time while it fails. */
async function sendDue(webhooks: Webhooks, webhook: LeasedWebhook): Promise<void> {
  const keys = webhook.secrets.map((secret) => signingKey(webhooks, webhook.id, secret));
  const left: ClaimedDelivery[] = [];
  const deps: DeliveryDeps<ClaimedDelivery> = {
    claim: (most) => claim(webhooks, webhook, most),
    openSlots: (granted) => webhooks.slots.open(webhook.projectId, granted),
    send: async (row, sent) => {
      if (!(await send(webhooks, webhook, keys, row, sent))) left.push(row);
    },
    leaseHolds: () => renewLease(webhooks.pool, webhook.id, webhook.lease, LEASE_MS),
    returnUnsent: (row) => left.push(row),
    isStopping: () => webhooks.stopping.aborted,
  };
  try {
    await runDeliveries(deps, webhook.isFailing ? 1 : FIRST_CONCURRENCY);
  } finally {
    if (left.length > 0) await returnClaims(webhooks.pool, webhook.id, left);
  }
}

function signingKey({ keys }: Webhooks, webhookId: string, secret: Uint8Array): Uint8Array {
  const bytes = findSecretBytes(decryptSecret(keys, secret, webhookId));
  if (bytes === undefined) throw new Error(`the stored secret of ${webhookId} has no valid format`);
  return bytes;
}

function claim(
  { pool, newDeliveryId }: Webhooks,
  { id, lease }: LeasedWebhook,
  most: number,
): Promise<ClaimedDelivery[]> {
  const ids = Array.from({ length: most }, newDeliveryId);
  return claimDeliveries(pool, {
    webhookId: id,
    lease,
    leaseMs: LEASE_MS,
    visibleMs: VISIBLE_MS,
    ids,
  });
}

/**
 * Makes one attempt and records it. Calls `sent` once with the change of the concurrency limit. Never rejects.
 *
 * @returns false if the attempt was aborted by shutdown
 */
async function send(
  webhooks: Webhooks,
  { url, lease }: LeasedWebhook,
  keys: readonly Uint8Array[],
  row: ClaimedDelivery,
  sent: (next: ConcurrencyChange) => void,
): Promise<boolean> {
  const at = new Date(webhooks.clock());
  const result = await post(webhooks, { url, keys, atMs: at.getTime() }, row);
  sent(concurrencyAfter(result));
  try {
    if (webhooks.aborting.aborted && result.outcome === 'failed') return false;
    await webhooks.record(attemptRecord(row, { lease, url, at, random: webhooks.random() }, result));
  } catch (error) {
    if (!isDatabaseUnavailable(error)) {
      webhooks.log.error({ err: error, delivery: row.id }, 'an attempt was not recorded; retrying');
    } else {
      const { message: reason } = error as Error;
      webhooks.outageLog.failed(
        { work: 'recording attempts', reason },
        'an attempt was not recorded; retrying',
      );
    }
  }
  return true;
}

async function post(
  { send: sendRequest, baseUrl }: Webhooks,
  request: Pick<WebhookRequest, 'url' | 'keys' | 'atMs'>,
  row: ClaimedDelivery,
): Promise<SendResult> {
  try {
    return await sendRequest({ ...request, ...eventText(row, baseUrl()) });
  } catch (error) {
    return { outcome: 'failed', durationMs: 0, error: (error as Error).message, answer: '' };
  }
}

function concurrencyAfter({ outcome, durationMs, gone }: SendResult): ConcurrencyChange {
  if (outcome === 'failed') return () => (gone === true ? 0 : 1);
  if (durationMs > SLOW_MS) return (limit) => Math.ceil(limit / 2);
  return durationMs > FAST_MS ? (limit) => Math.min(MAX_CONCURRENCY, limit + 1 / limit) : (limit) => limit;
}
