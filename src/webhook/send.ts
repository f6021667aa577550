import type { IncomingHttpHeaders } from 'node:http';
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
export type SendDeps = {
  /** Milliseconds since 1970. */
  clock: () => number;
  connect?: Agent.Options['connect'];
  /** Until the status of an answer; 15 s when left out. */
  timeoutMs?: number;
};

const TIMEOUT_MS = 15_000;
/** Once the status is known, the start of the body is all that is left to wait for. */
const BODY_TIMEOUT_MS = 2_000;
const MAX_ANSWER_BYTES = 2_048;
const KEEP_ALIVE_MS = 10_000;
/** Connections to one origin, whoever's subscriptions it serves. */
const CONNECTIONS_PER_ORIGIN = 64;
const USER_AGENT = 'attestation-service/1 (webhooks)';

/** Opens the connections that deliveries are sent over. */
export function openWebhookSender(deps: SendDeps): { send: SendWebhook; close: () => Promise<void> } {
  const agent = new Agent({
    ...(deps.connect ? { connect: deps.connect } : {}),
    keepAliveTimeout: KEEP_ALIVE_MS,
    pipelining: 1,
    connections: CONNECTIONS_PER_ORIGIN,
  });
  return {
    send: (request, signal) => send(deps, agent, request, signal),
    close: () => agent.destroy(),
  };
}

async function send(
  { clock, timeoutMs = TIMEOUT_MS }: SendDeps,
  agent: Dispatcher,
  request: WebhookRequest,
  signal: AbortSignal,
): Promise<SendResult> {
  const startedMs = clock();
  const took = () => Math.max(0, Math.round(clock() - startedMs));
  try {
    const answer = await exchange(agent, postOf(request, startedMs), timeoutMs, signal);
    return { ...resultOf(answer, clock()), answer: answer.text, durationMs: took() };
  } catch (error) {
    return { outcome: 'failed', durationMs: took(), error: reasonOf(error), answer: '' };
  }
}

function postOf({ url, id, body, keys }: WebhookRequest, nowMs: number): Dispatcher.DispatchOptions {
  const { origin, pathname, search } = new URL(url);
  const timestamp = Math.floor(nowMs / 1000);
  return {
    origin,
    path: pathname + search,
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'user-agent': USER_AGENT,
      ...signatureHeaders(keys, { id, timestamp, body }),
    },
    body,
  };
}

/** An answer: its status and headers, and of its body the first 2 KiB, as much as comes in a moment. */
type Answer = { statusCode: number; headers: IncomingHttpHeaders; text: string };

/**
 * One request and its answer. Redirects are not followed: the address was looked at, and where one leads was not. Once
 * the status is known neither the rest nor how it ends changes the outcome. `dispatch` is undici's plain form: it makes
 * no stream of the body, which costs more than all else here.
 */
function exchange(
  agent: Dispatcher,
  request: Dispatcher.DispatchOptions,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    let head: { statusCode: number; headers: IncomingHttpHeaders } | undefined;
    let controller: Dispatcher.DispatchController | undefined;
    let ended: Error | undefined;
    const end = (error: Error) => {
      if (ended !== undefined) return;
      ended = error;
      clearTimeout(timer);
      signal.removeEventListener('abort', stopped);
      if (head === undefined) reject(error);
      else resolve({ ...head, text: startOf(chunks) });
    };
    const stop = (error: Error) => {
      end(error);
      controller?.abort(error);
    };
    const stopped = () => stop(signal.reason);
    let timer = setTimeout(() => stop(new Error(`no answer within ${timeoutMs / 1000} s`)), timeoutMs);
    signal.addEventListener('abort', stopped);
    if (signal.aborted) return stopped();
    agent.dispatch(request, {
      onRequestStart: (started) => {
        controller = started;
        if (ended !== undefined) started.abort(ended);
      },
      onResponseStart: (_, statusCode, headers) => {
        if (statusCode < 200) return;
        head = { statusCode, headers };
        clearTimeout(timer);
        timer = setTimeout(() => stop(ENOUGH), BODY_TIMEOUT_MS);
      },
      onResponseData: (_, chunk) => {
        chunks.push(chunk);
        size += chunk.length;
        if (size >= MAX_ANSWER_BYTES) stop(ENOUGH);
      },
      onResponseEnd: () => end(ENOUGH),
      onResponseError: (_, error) => end(error),
    });
  });
}

const ENOUGH = new Error('enough of the answer was read');

function startOf(chunks: readonly Buffer[]): string {
  return chunks.length === 0 ? '' : Buffer.concat(chunks).subarray(0, MAX_ANSWER_BYTES).toString('utf8');
}

function resultOf({ statusCode, headers }: Answer, nowMs: number) {
  const retryAfterMs = readRetryAfter(headers['retry-after'], nowMs);
  const isDelivered = statusCode >= 200 && statusCode < 300;
  const isRedirect = statusCode >= 300 && statusCode < 400;
  const error = `the endpoint answered ${statusCode}${isRedirect ? '; redirects are not followed' : ''}`;
  return {
    outcome: isDelivered ? 'delivered' : 'failed',
    status: statusCode,
    ...(isDelivered ? {} : { error }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    gone: statusCode === 410,
  } as const;
}

/** Trying several addresses fails with an AggregateError, whose own message is empty. */
function reasonOf(error: unknown): string {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  return first instanceof Error && first.message !== '' ? first.message : 'the connection failed';
}

function readRetryAfter(header: string | string[] | undefined, nowMs: number): number | undefined {
  if (typeof header !== 'string') return undefined;
  const ms = /^\d{1,9}$/.test(header) ? Number(header) * 1000 : Date.parse(header) - nowMs;
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
