import { setMaxListeners } from 'node:events';
import type { Socket } from 'node:net';
import type { ConnectRouter } from '@connectrpc/connect';
import type { FastifyInstance } from 'fastify';
import type { TlsFiles } from '../../config/tls-files.js';
import { ApiError, deadlineExceeded, internalError } from '../core/errors.js';
import { listen } from '../core/http/listen.js';
import type { Logger } from '../core/logger.js';
import { createApp } from './app.js';
import { endRequestSpan } from './call/call-span.js';
import { createInterceptors, type InterceptorDeps, type Interceptors } from './call/interceptors.js';
import { createValidate } from './call/validate.js';
import { refuseEarly, refuseUnknownRpc, wantsRpc } from './connect/refusal.js';
import { refuse } from './connect/unary.js';
import { createCors } from './cors.js';
import { assertUnambiguous, normalizeTarget } from './request-target.js';
import { createRestHandler, type RestOptions } from './rest/handler.js';
import { createBodyMemory, createResponseMemory } from './socket/bodies.js';
import { refuseMalformed } from './socket/client-error.js';
import { closeAfterResponse, drain } from './socket/drain.js';
import { DEFAULT_LIMITS, type Limits } from './socket/limits.js';
import { createListener } from './socket/listener.js';
import { createPeers, type Peers } from './socket/peers.js';
import { watchTimeouts } from './socket/request-timeout.js';
import {
  createRequestIds,
  createRequestLog,
  createRequests,
  isClosed,
  type Observation,
  type RequestRecord,
  type Requests,
} from './socket/requests.js';

export type ServerDeps = Omit<InterceptorDeps, 'validate'> & {
  /** Adds the services that anyone may call and that may stream: health, reflection. */
  publicServices?: (router: ConnectRouter) => void;
  /** Routes without authentication, outside `/v1/`. Their request bodies are not read. */
  publicRoutes?: (app: FastifyInstance) => void | Promise<void>;
  log: Logger;
  /** Called for every finished request, for metrics; it is logged already. */
  observe?: (observation: Observation) => void;
  limits?: Partial<Limits>;
  tls?: TlsFiles;
  /** Web origins whose pages may call; `['*']` for all, none by default. */
  corsOrigins?: readonly string[];
};

export type ApiServer = {
  /** Starts to listen; a port of 0 picks a free one. */
  listen: (address: { host: string; port: number }) => Promise<{ port: number }>;
  /** Drains: finishes open requests within `graceMs`. */
  close: () => Promise<void>;
  /** Reads certificate and key again, for new connections; throws when they cannot be used and keeps the old. */
  reloadTls: () => void;
};

/**
 * REST, Connect, gRPC, gRPC-Web and the public routes on one port, over HTTP/1.1 and HTTP/2, with or without TLS.
 * Throws when a method of the services lacks a handler or the options that say who may call it.
 */
export function createServer(deps: ServerDeps): ApiServer {
  const limits = { ...DEFAULT_LIMITS, ...deps.limits };
  const newRequestId = createRequestIds(deps.nowMs);
  const interceptors = createInterceptors({ ...deps, validate: createValidate() });
  const peers = createPeers(limits);
  const onEnd = (record: RequestRecord) => {
    if (record.call !== undefined) interceptors.finish(record.call);
    peers.removeRequest(record);
  };
  const requests = trackRequests(deps, onEnd, newRequestId);
  const { holdResponse, refuseUnread } = createResponseMemory(limits.maxUnreadBytes);
  const holdFor = createBodyMemory(limits.maxHeldBytes, refuseUnread);
  const shared = { ...deps, ...limits, limits, interceptors, holdFor, holdResponse };
  const rest = createRestHandler({ ...shared, ...interceptors, ...reportTo(deps.log) });
  const closing = new AbortController();
  // Each open call of Connect's library listens to it.
  setMaxListeners(0, closing.signal);
  const app = createApp({
    ...shared,
    rest,
    closing: closing.signal,
    notFound: (record) => (wantsRpc(record) ? refuseRpc(interceptors, record) : rest.notFound(record)),
  });
  const serve = createDispatcher(app.serve, deps.corsOrigins);
  const admit = createAdmission(peers, limits, serve);
  const listener = createListener({
    limits,
    tls: deps.tls,
    onConnection: peers.addConnection,
    onRequest: (req, res) => {
      if (closing.signal.aborted) closeAfterResponse(res);
      admit(requests.begin(req, res));
    },
    onClientError: (error, socket) =>
      refuseMalformed(error, socket, newRequestId(), isResponding(requests, socket)),
  });
  const stopWatching = watchTimeouts(requests, limits, (record) => {
    if (record.protocol === 'rest') rest.refuse(record, deadlineExceeded());
    else refuse(shared, record, deadlineExceeded());
  });
  return {
    listen: async (address) => {
      await app.ready();
      return listen(listener.server, address);
    },
    close: once(async () => {
      closing.abort();
      await drain(listener, requests, limits);
      stopWatching();
      await app.close();
    }),
    reloadTls: listener.reloadTls,
  };
}

async function refuseRpc({ countUnrouted }: Interceptors, record: RequestRecord): Promise<void> {
  await countUnrouted(record);
  refuseUnknownRpc(record);
}

/** The open requests; each that ends is logged and observed. */
function trackRequests(
  { log, observe, nowMs }: ServerDeps,
  onEnd: (record: RequestRecord) => void,
  newRequestId: () => string,
): Requests {
  const logRequest = createRequestLog(log);
  return createRequests({
    onEnd,
    newRequestId,
    monotonicMs: () => performance.now(),
    observe: (observation, record) => {
      logRequest(observation);
      endRequestSpan(observation, record, nowMs());
      observe?.(observation);
    },
  });
}

/** Starts work, now or in a later turn of the event loop. */
type StartQueue = (work: () => void) => void;

/**
 * Starts at most `perTurn` works in a turn of the event loop and queues the others, first in, first out. Node handles
 * all sockets that are readable before anything else, so that without it a burst of requests delays timers, responses
 * and health checks until its last request has started: with 10,000 requests at once, `/livez` took 1.9 s.
 */
export function createStartQueue(perTurn: number): StartQueue {
  const queue: (() => void)[] = [];
  let started = 0;
  let isScheduled = false;
  const start = (work: () => void) => {
    started++;
    work();
  };
  const schedule = () => {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(nextTurn);
  };
  const nextTurn = () => {
    isScheduled = false;
    started = 0;
    for (const work of queue.splice(0, perTurn)) start(work);
    if (started > 0) schedule();
  };
  return (work) => {
    schedule();
    if (started < perTurn && queue.length === 0) start(work);
    else queue.push(work);
  };
}

/** Serves requests in their order, as many at a time as the limits allow, and refuses those beyond. */
function createAdmission(
  peers: Peers,
  { maxStartsPerTurn }: Limits,
  serve: (record: RequestRecord) => void,
): (record: RequestRecord) => void {
  const start = createStartQueue(maxStartsPerTurn);
  return (record) => {
    const refusal = peers.addRequest(record);
    start(() => {
      if (isClosed(record.res)) return;
      if (refusal === undefined) serve(record);
      else refuseEarly(record, refusal);
    });
  };
}

function reportTo(log: Logger): Pick<RestOptions, 'onInternalError'> {
  return {
    onInternalError: (err, requestId) => log.error({ err, request_id: requestId }, 'a call failed'),
  };
}

/** Checks the target of every request and hands it to its route. */
function createDispatcher(
  route: (record: RequestRecord) => void,
  corsOrigins: readonly string[] = [],
): (record: RequestRecord) => void {
  const answersPreflight = corsOrigins.length === 0 ? undefined : createCors(corsOrigins);
  return (record) => {
    try {
      assertUnambiguous(record.req);
      normalizeTarget(record.req);
      if (answersPreflight?.(record)) return;
      route(record);
    } catch (error) {
      refuseEarly(record, error instanceof ApiError ? error : internalError(record.requestId, error));
    }
  };
}

function once(work: () => Promise<void>): () => Promise<void> {
  let started: Promise<void> | undefined;
  return () => {
    started ??= work();
    return started;
  };
}

function isResponding(requests: Requests, socket: Socket): boolean {
  for (const { req, res } of requests.all()) if (req.socket === socket && res.headersSent) return true;
  return false;
}
