/** Sends alarms to a webhook, signed as Standard Webhooks say. */
import { setTimeout as pause } from 'node:timers/promises';
import { signatureHeaders } from '../../../server/webhooks/delivery/sign.js';
import { boundedRequest } from '../../../server/witnessing/clients/bounded-request.js';

/** Where alarms go. `key` signs them; none of them is signed without. */
export type WebhookTarget = { readonly url: string; readonly key: Uint8Array | undefined };

/** The webhook's body. `id` is the same on every attempt, so that receivers can drop duplicates. */
type WebhookEvent = {
  readonly id: string;
  readonly type: string;
  readonly created: string;
  readonly data: object;
};

/** Sends in the background; `settle` waits until everything is sent, or given up after a minute. */
export type AlarmWebhook = { send(event: WebhookEvent): void; settle(): Promise<void> };

type WebhookDeps = { readonly now: () => Date; readonly onFailure: (message: string) => void };

const TIMEOUT_MS = 10_000;
const MAX_RESPONSE_BYTES = 64 * 1024;
const RETRY_DELAYS_MS = [1_000, 2_000, 5_000, 10_000, 30_000];
const SETTLE_MS = 60_000;

/** Opens the webhook. A delivery that is not answered by 2xx is repeated five times within a minute. */
export function openWebhook({ now, onFailure }: WebhookDeps, target: WebhookTarget): AlarmWebhook {
  const closing = new AbortController();
  const sending = new Set<Promise<void>>();
  const deliver = async (event: WebhookEvent): Promise<void> => {
    for (const waitMs of [...RETRY_DELAYS_MS, undefined]) {
      const failure = await post(target, event, now(), closing.signal);
      if (failure === undefined) return;
      onFailure(`the webhook did not accept the alarm: ${failure}`);
      if (waitMs === undefined || closing.signal.aborted) return;
      await pause(waitMs, undefined, { signal: closing.signal }).catch(() => {});
    }
  };
  return {
    send: (event) => {
      const delivery = deliver(event).finally(() => sending.delete(delivery));
      sending.add(delivery);
    },
    settle: async () => {
      const timer = setTimeout(() => closing.abort(), SETTLE_MS);
      await Promise.all(sending);
      clearTimeout(timer);
    },
  };
}

/** Returns why the delivery failed. */
async function post(
  { url, key }: WebhookTarget,
  event: WebhookEvent,
  now: Date,
  signal: AbortSignal,
): Promise<string | undefined> {
  const body = JSON.stringify(event);
  const timestamp = Math.floor(now.getTime() / 1000);
  const signed = signatureHeaders(key === undefined ? [] : [key], { id: event.id, timestamp, body });
  const unsigned = { 'webhook-id': event.id, 'webhook-timestamp': String(timestamp) };
  const request = {
    url,
    method: 'POST' as const,
    headers: { 'content-type': 'application/json', ...(key === undefined ? unsigned : signed) },
    body: Buffer.from(body),
    timeoutMs: TIMEOUT_MS,
    maxBytes: MAX_RESPONSE_BYTES,
  };
  try {
    const { status } = await boundedRequest({}, request, signal);
    return status >= 200 && status < 300 ? undefined : `HTTP ${status}`;
  } catch (error) {
    return (error as Error).message;
  }
}
