import { Agent, type Dispatcher } from 'undici';
import { signatureHeaders } from './sign.js';

/** A delivery to send; `keys` are the HMAC keys that sign it. */
export type WebhookRequest = { url: string; id: string; body: string; keys: readonly Uint8Array[] };

/** What came of an attempt. */
export type SendResult = {
  outcome: 'delivered' | 'failed';
  /** The HTTP status, when there was an answer. */
  status?: number;
  durationMs: number;
  /** Why it failed, for the receiver's operator. */
  error?: string;
  /** The first 2 KiB of the answer's body. */
  answer: string;
  /** The answer's `Retry-After`. */
  retryAfterMs?: number;
  /** Whether the answer was 410: the receiver wants nothing any more. */
  gone?: boolean;
};

/** Sends one delivery; never rejects. */
export type SendWebhook = (request: WebhookRequest, signal: AbortSignal) => Promise<SendResult>;

/** What sending works with. `connect` opens connections, and only to addresses that may be called. */
export type SendDeps = { clock: () => number; connect?: Agent.Options['connect'] };

const TIMEOUT_MS = 15_000;
const MAX_ANSWER_BYTES = 2_048;
const KEEP_ALIVE_MS = 10_000;
const USER_AGENT = 'attestation-service/1 (webhooks)';

/** Opens the connections that deliveries are sent over. */
export function openWebhookSender(deps: SendDeps): { send: SendWebhook; close: () => Promise<void> } {
  const agent = new Agent({
    ...(deps.connect ? { connect: deps.connect } : {}),
    keepAliveTimeout: KEEP_ALIVE_MS,
    pipelining: 1,
  });
  return {
    send: (request, signal) => send(deps, agent, request, signal),
    close: () => agent.destroy(),
  };
}

async function send(
  { clock }: SendDeps,
  agent: Dispatcher,
  { url, id, body, keys }: WebhookRequest,
  signal: AbortSignal,
): Promise<SendResult> {
  const startedMs = clock();
  const timestamp = Math.floor(startedMs / 1000);
  const took = () => Math.round(clock() - startedMs);
  try {
    const answer = await agent.request({
      origin: new URL(url).origin,
      path: new URL(url).pathname + new URL(url).search,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': USER_AGENT,
        ...signatureHeaders(keys, { id, timestamp, body }),
      },
      body,
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    });
    const text = await readStart(answer.body);
    const retryAfterMs = readRetryAfter(answer.headers['retry-after'], clock());
    const isDelivered = answer.statusCode >= 200 && answer.statusCode < 300;
    return {
      outcome: isDelivered ? 'delivered' : 'failed',
      status: answer.statusCode,
      durationMs: took(),
      answer: text,
      ...(isDelivered ? {} : { error: `the endpoint answered ${answer.statusCode}` }),
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      gone: answer.statusCode === 410,
    };
  } catch (error) {
    return { outcome: 'failed', durationMs: took(), error: (error as Error).message, answer: '' };
  }
}

/** The first 2 KiB of a body; the rest is not waited for. */
async function readStart(body: Dispatcher.ResponseData['body']): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    chunks.push(chunk as Buffer);
    size += (chunk as Buffer).length;
    if (size >= MAX_ANSWER_BYTES) break;
  }
  return Buffer.concat(chunks).subarray(0, MAX_ANSWER_BYTES).toString('utf8');
}

function readRetryAfter(header: string | string[] | undefined, nowMs: number): number | undefined {
  if (typeof header !== 'string') return undefined;
  const ms = /^\d{1,9}$/.test(header) ? Number(header) * 1000 : Date.parse(header) - nowMs;
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
