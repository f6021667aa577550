/** A client of HTTP for the SDKs of destinations: bounded in time and in the bytes it reads, and stopped at once. */
import { once } from 'node:events';
import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import { pipeline, Readable } from 'node:stream';
import { inRequest } from '../../telemetry/requests.js';
import { annotate, traceHeaders } from '../../telemetry/spans.js';
import { DestinationError } from './destination.js';
import { explainNetworkError, TransferError } from './failure-text.js';

/** Maximum size of an answer; those to exports are smaller. */
const MAX_ANSWER_BYTES = 256 * 1024;
/** Idle connections are closed before the server closes them, which could race a request. */
const KEEP_ALIVE_MS = 10_000;

/** A request. A stream as body is destroyed at the end; its length must be in the headers. */
type HttpRequest = {
  method: string;
  url: string;
  headers: Readonly<Record<string, string>>;
  body?: string | Uint8Array | Readable | undefined;
  signal: AbortSignal;
};

/** A whole answer with any status; the names of headers are in lower case. */
export type HttpAnswer = { status: number; headers: Readonly<Record<string, string>>; body: string };

/** The same with the bytes of the body, which is their text in UTF-8. */
type WholeAnswer = HttpAnswer & { bytes: Uint8Array };

/**
 * Bounds: milliseconds without a byte sent or received, and from the last byte of the request to the last of the answer.
 * While the operating system sends what it has buffered of a stream, only the latter holds.
 */
export type HttpLimits = { idleMs: number; answerMs: number };

/** For errors of no destination in particular. */
export const HTTP_LIMITS: HttpLimits = { idleMs: 30_000, answerMs: 120_000 };

type HttpAgents = { httpAgent: http.Agent; httpsAgent: https.Agent };

export type HttpClient = {
  /**
   * Sends a request once, without following redirects. Rejects with `DestinationError` if there is no whole answer, with
   * the error of the body if that cannot be read, and with the signal's reason if it is aborted.
   */
  send(request: HttpRequest): Promise<WholeAnswer>;
  /** Ends all requests and connections. */
  close(): Promise<void>;
};

/** Creates a client that connects by the agents. */
export function createHttpClient(agents: HttpAgents, limits: HttpLimits): HttpClient {
  const closing = new AbortController();
  const open = new Set<Promise<WholeAnswer>>();
  for (const agent of [agents.httpAgent, agents.httpsAgent])
    agent.on('free', (socket: Socket) => socket.setTimeout(KEEP_ALIVE_MS));
  return {
    send: async (request) => {
      const signal = AbortSignal.any([request.signal, closing.signal]);
      const exchange = exchangeTraced({ agents, limits }, { ...request, signal });
      open.add(exchange);
      return exchange.finally(() => open.delete(exchange));
    },
    close: async () => {
      closing.abort(new DestinationError('the destination is closed'));
      await Promise.allSettled(open);
      agents.httpAgent.destroy();
      agents.httpsAgent.destroy();
    },
  };
}

function exchangeTraced(
  deps: { agents: HttpAgents; limits: HttpLimits },
  request: HttpRequest,
): Promise<WholeAnswer> {
  return inRequest(request, async () => {
    const headers = { ...request.headers, ...traceHeaders() };
    const answer = await exchangeOnce(deps, { ...request, headers });
    annotate({ 'http.response.status_code': answer.status });
    return answer;
  });
}

async function exchangeOnce(
  { agents, limits }: { agents: HttpAgents; limits: HttpLimits },
  { method, url, headers, body, signal }: HttpRequest,
): Promise<WholeAnswer> {
  signal.throwIfAborted();
  const isTls = url.startsWith('https:');
  const agent = isTls ? agents.httpsAgent : agents.httpAgent;
  // The socket's own timer sees bytes leave; a stream into it sees only that they were buffered.
  const options = { method, headers, agent, signal, timeout: limits.idleMs };
  const request = (isTls ? https : http).request(url, options);
  const failed = watchBody(body, request);
  const stop = boundTime(request, limits, body instanceof Readable);
  try {
    const answered = once(request, 'response') as Promise<[IncomingMessage]>;
    sendBody(request, body);
    const [response] = await answered;
    const bytes = await readBody(response);
    return {
      status: response.statusCode ?? 0,
      headers: joinHeaders(response),
      bytes,
      body: bytes.toString(),
    };
  } catch (error) {
    signal.throwIfAborted();
    throw failed() ?? new DestinationError(explainNetworkError(error, new URL(url).hostname));
  } finally {
    stop();
    // An answer may come before the whole request was sent.
    if (!request.writableFinished) request.destroy();
  }
}

/** Gives the error of a body that could not be read. A failed request destroys its body, which is no error of that. */
function watchBody(body: HttpRequest['body'], request: ClientRequest): () => unknown {
  let failure: unknown;
  if (body instanceof Readable)
    body.once('error', (error) => {
      if (!request.destroyed) failure = error;
    });
  return () => failure;
}

function boundTime(
  request: ClientRequest,
  { idleMs, answerMs }: HttpLimits,
  isStreamed: boolean,
): () => void {
  let timer: NodeJS.Timeout | undefined;
  const fail = (message: string) => request.destroy(new TransferError(message));
  request.once('timeout', () => fail(`made no progress for ${idleMs / 1000} s`));
  request.once('finish', () => {
    if (isStreamed) request.setTimeout(0);
    timer = setTimeout(() => fail(`did not answer within ${answerMs / 1000} s`), answerMs);
  });
  // An error after the answer must have a listener.
  request.on('error', () => {});
  return () => clearTimeout(timer);
}

function sendBody(request: ClientRequest, body: HttpRequest['body']): void {
  if (body === undefined || typeof body === 'string' || body instanceof Uint8Array) request.end(body);
  // The request emits the error of the stream.
  else pipeline(body, request, () => {});
}

function joinHeaders({ headers }: IncomingMessage): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}

/** Throwing in the loop closes the connection. */
async function readBody(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) throw new TransferError('sent an answer that is too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
