import type { IncomingHttpHeaders } from 'node:http';
import { Agent, buildConnector, type Dispatcher } from 'undici';
import { firstError } from '../../../protocol/first-error.js';
import { readRetryAfter } from '../../net/retry-after.js';
import { inRequest } from '../../telemetry/requests.js';
import { annotate, traceHeaders } from '../../telemetry/spans.js';
import { acceptingContinue, createExchanges, type Exchanges } from './exchange.js';
import { requestHeaders } from './sign.js';

/** A delivery to send; `keys` are the HMAC keys that sign it, `atMs` is the time that they sign, since 1970. */
export type WebhookRequest = {
  url: string;
  id: string;
  body: string;
  keys: readonly Uint8Array[];
  atMs: number;
};

/** The outcome of an attempt. */
export type SendResult = {
  outcome: 'delivered' | 'failed';
  /** The HTTP status, if there was a response. */
  status?: number;
  durationMs: number;
  /** The reason of the failure, for the receiver's operator. */
  error?: string;
  /** The first 2 KiB of the response body. */
  answer: string;
  /** The response's `Retry-After`. */
  retryAfterMs?: number;
  /** Whether the status was 410: the receiver wants no more events. */
  gone?: boolean;
};

/** Sends one delivery; never rejects. */
export type SendWebhook = (request: WebhookRequest) => Promise<SendResult>;

/** The dependencies of sending. `connect` opens connections and refuses forbidden addresses. */
export type SendDeps = {
  /** Milliseconds since 1970. */
  clock: () => number;
  /** Aborts requests that have no response yet. */
  aborting: AbortSignal;
  connect?: buildConnector.connector;
  /** Timeout of the response status; 15 s by default. */
  timeoutMs?: number;
};

const TIMEOUT_MS = 15_000;
const KEEP_ALIVE_MS = 10_000;

/** Opens a connection pool for deliveries. */
export function openWebhookSender(deps: SendDeps): { send: SendWebhook; close: () => Promise<void> } {
  const { connect = buildConnector({}), aborting, timeoutMs = TIMEOUT_MS } = deps;
  const agent = new Agent({
    connect: acceptingContinue(connect),
    keepAliveTimeout: KEEP_ALIVE_MS,
    headersTimeout: 0,
    bodyTimeout: 0,
    pipelining: 1,
  });
  const exchanges = createExchanges({ timeoutMs, aborting });
  return {
    send: (request) => sendTraced(deps, agent, exchanges, request),
    close: () => {
      exchanges.close();
      return agent.destroy();
    },
  };
}

/** Sends in a span of its own, whose `traceparent` the receiver gets. */
function sendTraced(
  deps: SendDeps,
  agent: Dispatcher,
  exchanges: Exchanges,
  request: WebhookRequest,
): Promise<SendResult> {
  return inRequest({ method: 'POST', url: request.url }, async () => {
    const result = await send(deps, agent, exchanges, request);
    const { outcome, status } = result;
    annotate({ 'attest.outcome': outcome, ...(status && { 'http.response.status_code': status }) });
    return result;
  });
}

function send(
  { clock, aborting }: SendDeps,
  agent: Dispatcher,
  exchanges: Exchanges,
  request: WebhookRequest,
): Promise<SendResult> {
  const startedMs = performance.now();
  const took = () => Math.round(performance.now() - startedMs);
  return new Promise((resolve) => {
    const exchange = exchanges.open({
      failed: (error) =>
        resolve({ outcome: 'failed', durationMs: took(), error: reasonOf(error), answer: '' }),
      answered: (status, headers, answer) =>
        resolve(resultOf({ status, durationMs: took(), answer }, headers, clock())),
    });
    try {
      aborting.throwIfAborted();
      agent.dispatch(optionsOf(request), exchange);
    } catch (error) {
      exchange.fail(error);
    }
  });
}

/** Redirects are not followed: only this address was checked, not their targets. */
function optionsOf({ url, id, body, keys, atMs }: WebhookRequest): Dispatcher.DispatchOptions {
  const { origin, pathname, search } = new URL(url);
  return {
    origin,
    path: pathname + search,
    method: 'POST',
    headers: { ...requestHeaders(keys, { id, atMs, body }), ...traceHeaders() },
    body,
  };
}

function resultOf(
  answered: { status: number; durationMs: number; answer: string },
  headers: IncomingHttpHeaders,
  nowMs: number,
): SendResult {
  const { status, durationMs, answer } = answered;
  if (status >= 200 && status < 300) return { outcome: 'delivered', status, durationMs, answer, gone: false };
  const retryAfterMs = readRetryAfter(headers['retry-after'], nowMs);
  const isRedirect = status >= 300 && status < 400;
  return {
    outcome: 'failed',
    status,
    durationMs,
    answer,
    error: `the endpoint answered ${status}${isRedirect ? '; redirects are not followed' : ''}`,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    gone: status === 410,
  };
}

function reasonOf(error: unknown): string {
  const first = firstError(error);
  if (!(first instanceof Error) || first.message === '') return 'the connection failed';
  // An assertion of undici's parser means nothing to a receiver.
  return 'code' in first && first.code === 'ERR_ASSERTION' ? 'the answer is not HTTP/1.1' : first.message;
}
