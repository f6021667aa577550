/**
 * Consumes: what a subscription has due: deliveries to be tried again, and ranges of events that have no rows yet.
 * Commit point: the statement that records an attempt.
 * Emits: nothing; when something is due next stands in the tables.
 * A crash leaves: deliveries whose attempt is not recorded; they are due again after a minute, and the receiver may see
 * the event, under the same id, once more.
 */
import { decryptSecret } from '../encryption.js';
import { DONE, type Outcome, retryAfter } from '../queue/outcome.js';
import { claimDeliveries, type DeliveryRow, redeliverFailed } from '../store/webhook-deliveries.js';
import { type LeasedWebhook, leaseWebhook, releaseWebhook } from '../store/webhook-leases.js';
import type { SendResult } from '../webhook/send.js';
import { findSecretBytes } from '../webhook/sign.js';
import { attemptOf } from './attempt.js';
import { eventBody, eventOf } from './event.js';
import type { Pipeline, Webhooks } from './pipeline.js';

/** Longer than an attempt takes with its recording; renewed with every claim. */
const LEASE_MS = 60_000;
/** After this a claimed delivery is due again: an attempt, and its recording while the database is away. */
const VISIBLE_MS = 60_000;
/** How long one subscription is worked on before others get their turn. */
const TURN_MS = 10_000;
/** While attempts are under way, what else is due is looked for this often. */
const LOOK_MS = 1_000;
/** What is due so soon is waited for in the queue, not in the tables. */
const SOON_MS = 1_000;
const REDELIVER_ROWS = 1_000;
const BUSY_MS = 1_000;
const FIRST_WIDTH = 8;
const MAX_WIDTH = 32;
/** An endpoint that takes longer gets fewer attempts at a time. */
const SLOW_MS = 1_000;

/** Sends what is due of one subscription, for one turn. */
export async function deliver({ webhooks }: Pick<Pipeline, 'webhooks'>, webhookId: string): Promise<Outcome> {
  if (webhooks.active.size >= webhooks.maxActive) return retryAfter(BUSY_MS);
  const webhook = await leaseWebhook(webhooks.pool, webhookId, LEASE_MS);
  if (webhook === undefined) return DONE;
  webhooks.active.add(webhookId);
  try {
    await startRedelivery(webhooks, webhook);
    await sendDue(webhooks, webhook);
  } finally {
    webhooks.active.delete(webhookId);
  }
  const dueMs = await releaseWebhook(webhooks.pool, webhookId, webhook.lease);
  return dueMs !== undefined && dueMs < SOON_MS && !webhooks.stopping.aborted ? retryAfter(dueMs) : DONE;
}

async function startRedelivery({ pool }: Webhooks, { id, redeliverSince }: LeasedWebhook): Promise<void> {
  if (redeliverSince === null) return;
  await pool.begin((tx) => redeliverFailed(tx, id, redeliverSince, REDELIVER_ROWS));
}

/** The attempts of one turn: as many at a time as the endpoint has shown that it takes, one while it fails. */
async function sendDue(webhooks: Webhooks, webhook: LeasedWebhook): Promise<void> {
  const keys = webhook.secrets.map((secret) => signingKey(webhooks, webhook.id, secret));
  const turn: Turn = {
    sending: 0,
    recording: 0,
    width: webhook.isFailing ? 1 : FIRST_WIDTH,
    ended: () => {},
  };
  const untilMs = performance.now() + TURN_MS;
  let lookAtMs = 0;
  const start = async (row: DeliveryRow) => {
    await send(webhooks, webhook, keys, row, (next) => {
      turn.width = next(turn.width);
      turn.sending--;
      turn.recording++;
      turn.ended();
    });
    turn.recording--;
    turn.ended();
  };
  try {
    for (;;) {
      const nowMs = performance.now();
      const isOver = webhooks.stopping.aborted || nowMs > untilMs;
      if (!isOver && nowMs >= lookAtMs && turn.sending <= turn.width / 2) {
        const { rows, wanted } = await claim(webhooks, webhook, turn.width - turn.sending);
        turn.sending += rows.length;
        for (const row of rows) void start(row);
        if (rows.length < wanted) lookAtMs = performance.now() + LOOK_MS;
      } else if (turn.sending + turn.recording === 0) {
        return;
      } else {
        await anEnd(turn, LOOK_MS);
      }
    }
  } finally {
    while (turn.sending + turn.recording > 0) await anEnd(turn, LOOK_MS);
  }
}

/**
 * One subscription's requests under way, how many there may be, and the attempts being recorded; `ended` is called when
 * one of either ends.
 */
type Turn = { sending: number; recording: number; width: number; ended: () => void };

/** Waits until an attempt ends, or `ms`. */
function anEnd(turn: Turn, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    turn.ended = () => {
      clearTimeout(timer);
      resolve();
    };
  });
}

function signingKey({ keys }: Webhooks, webhookId: string, secret: Uint8Array): Uint8Array {
  const bytes = findSecretBytes(decryptSecret(keys, secret, webhookId));
  if (bytes === undefined) throw new Error(`the stored secret of ${webhookId} is none`);
  return bytes;
}

/** Takes slots first, then as many deliveries; slots that nothing is due for are given back. */
async function claim(
  { pool, slots, newDeliveryId }: Webhooks,
  { id, lease, projectId }: LeasedWebhook,
  most: number,
): Promise<{ rows: DeliveryRow[]; wanted: number }> {
  const wanted = await slots.take(projectId, most);
  let rows: DeliveryRow[] = [];
  try {
    const ids = Array.from({ length: wanted }, newDeliveryId);
    rows = await claimDeliveries(pool, {
      webhookId: id,
      lease,
      leaseMs: LEASE_MS,
      visibleMs: VISIBLE_MS,
      ids,
    });
    return { rows, wanted };
  } finally {
    slots.release(projectId, wanted - rows.length);
  }
}

type Width = (width: number) => number;

/** One attempt and its record; `sent` learns, once, what the endpoint's width becomes. Never rejects. */
async function send(
  webhooks: Webhooks,
  { url, projectId }: LeasedWebhook,
  keys: readonly Uint8Array[],
  row: DeliveryRow,
  sent: (next: Width) => void,
): Promise<void> {
  const at = new Date(webhooks.clock());
  const result = await post(webhooks, url, keys, row);
  webhooks.slots.release(projectId, 1);
  sent(widthAfter(result));
  try {
    if (webhooks.aborting.aborted && result.outcome === 'failed') return;
    await webhooks.record(attemptOf(row, at, result, webhooks.random()));
  } catch (error) {
    webhooks.log.error({ err: error, delivery: row.id }, 'an attempt was not recorded; it is made again');
  }
}

async function post(
  { send: sendRequest, baseUrl, aborting }: Webhooks,
  url: string,
  keys: readonly Uint8Array[],
  row: DeliveryRow,
): Promise<SendResult> {
  try {
    const event = eventOf(row, baseUrl());
    return await sendRequest({ url, id: event.id, body: eventBody(event), keys }, aborting);
  } catch (error) {
    return { outcome: 'failed', durationMs: 0, error: (error as Error).message, answer: '' };
  }
}

function widthAfter({ outcome, durationMs }: SendResult): Width {
  if (outcome === 'failed') return () => 1;
  return (width) => (durationMs > SLOW_MS ? Math.ceil(width / 2) : Math.min(MAX_WIDTH, width + 1));
}
