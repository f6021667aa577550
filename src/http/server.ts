import type { AddressInfo, Socket } from 'node:net';
import type { ConnectRouter } from '@connectrpc/connect';
import type { FastifyInstance } from 'fastify';
import { ApiError } from '../errors.js';
import type { Logger } from '../logger.js';
import { createApp } from './app.js';
import { refuseMalformed } from './client-error.js';
import { connectRoutes } from './connect.js';
import { normalizeTarget, surfaceFor } from './dispatch.js';
import { drain, endAfterAnswer } from './drain.js';
import { sendError } from './envelope.js';
import { internalError } from './failure.js';
import { createInterceptors, type InterceptorDeps } from './interceptors.js';
import { DEFAULT_LIMITS, type Limits } from './limits.js';
import { createListener, type TlsFiles } from './listener.js';
import { createRequestIds } from './request-id.js';
import { logRequest } from './request-log.js';
import {
  createRequests,
  type NodeRequest,
  type NodeResponse,
  type Observation,
  type RequestRecord,
  type Requests,
} from './requests.js';
import { restSurface } from './rest-surface.js';
import { refuseUnknownRpc, wantsGrpc } from './unknown-rpc.js';
import { createValidate } from './validate.js';

export type ServerDeps = Omit<InterceptorDeps, 'validate'> & {
  /** RPCs that anyone may call and that may stream: health, reflection. */
  moreRpcs?: (router: ConnectRouter) => void;
  /** Routes without authentication, outside `/v1/`. Their request bodies are not read. */
  publicRoutes?: (app: FastifyInstance) => void | Promise<void>;
  log: Logger;
  /** Told of every finished request, for metrics; the log has it already. */
  observe?: (observation: Observation) => void;
  limits?: Partial<Limits>;
  tls?: TlsFiles;
};

export type ApiServer = {
  /** Starts to listen; a port of 0 picks a free one. */
  listen: (address: { host: string; port: number }) => Promise<{ port: number }>;
  /** Finishes what was accepted, within `graceMs`. */
  close: () => Promise<void>;
  /** Reads certificate and key again, for new connections; throws when they do not fit and keeps the old. */
  reloadTls: () => void;
};

/**
 * REST, Connect, gRPC, gRPC-Web and the public routes on one port, over HTTP/1.1 and HTTP/2, with or without TLS.
 * Throws when a method of the services lacks a handler or the options that say who may call it.
 */
export function createServer(deps: ServerDeps): ApiServer {
  const limits = { ...DEFAULT_LIMITS, ...deps.limits };
  const newRequestId = createRequestIds(deps.nowMs);
  const requests = createRequests({
    newRequestId,
    monotonicMs: () => performance.now(),
    observe: (observation) => {
      logRequest(deps.log, observation);
      deps.observe?.(observation);
    },
  });
  const interceptors = createInterceptors({ ...deps, validate: createValidate() });
  const closing = new AbortController();
  const rest = restSurface({ ...deps, ...limits, interceptors, requests, newRequestId });
  const records = new WeakMap<object, RequestRecord>();
  const onRequest = (req: NodeRequest, res: NodeResponse) => {
    const record = requests.begin(req, res);
    if (closing.signal.aborted) endAfterAnswer(res);
    try {
      normalizeTarget(req);
      if (surfaceFor(req) === 'rest') return rest(record);
      res.setHeader('x-request-id', record.requestId);
      records.set(req, record);
      // Fastify is typed for HTTP/1.1 only, but routes both.
      app.routing(req as never, res as never);
    } catch (error) {
      sendError(record, error instanceof ApiError ? error : internalError(record.requestId, error));
    }
  };
  const listener = createListener({ limits, tls: deps.tls, onRequest });
  const app = createApp({
    server: listener.server,
    log: deps.log,
    limits,
    routes: connectRoutes({ services: deps.services, interceptors, log: deps.log }),
    moreRpcs: deps.moreRpcs,
    publicRoutes: deps.publicRoutes,
    getRecord: (req) => {
      const record = records.get(req);
      if (record === undefined) throw new Error('a request reached Fastify without its record');
      return record;
    },
    onClientError: (error, socket) =>
      refuseMalformed(error, socket, newRequestId(), isAnswering(requests, socket)),
    notFound: (record) => (wantsGrpc(record) ? refuseUnknownRpc(record) : rest(record)),
    closing: closing.signal,
  });
  let closed: Promise<void> | undefined;
  return {
    async listen({ host, port }) {
      await app.ready();
      await new Promise<void>((resolve, reject) => {
        listener.server.once('error', reject);
        listener.server.listen({ host, port }, () => {
          listener.server.off('error', reject);
          resolve();
        });
      });
      return { port: (listener.server.address() as AddressInfo).port };
    },
    close() {
      closed ??= (async () => {
        closing.abort();
        await drain(listener, requests, limits);
        await app.close();
      })();
      return closed;
    },
    reloadTls: listener.reloadTls,
  };
}

function isAnswering(requests: Requests, socket: Socket): boolean {
  for (const { req, res } of requests.all()) if (req.socket === socket && res.headersSent) return true;
  return false;
}
