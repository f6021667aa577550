import { constants, type Http2ServerResponse } from 'node:http2';
import { Readable } from 'node:stream';
import type { ConnectRouter } from '@connectrpc/connect';
import Fastify, { type FastifyInstance, type FastifyRequest } from 'fastify';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { ApiError, internalError } from '../core/errors.js';
import { tellPeers } from '../core/http/request-peer.js';
import type { Logger } from '../core/logger.js';
import { invalidRequest } from '../json/problems.js';
import type { JsonOptions } from './connect/messages.js';
import { registerServices } from './connect/services.js';
import { registerPublicServices } from './connect/streams.js';
import type { UnaryDeps } from './connect/unary.js';
import type { RestHandler } from './rest/handler.js';
import { routePattern } from './rest/http-rule.js';
import type { Route } from './rest/route.js';
import type { ServiceEntry } from './services.js';
import type { Limits } from './socket/limits.js';
import type { RequestRecord } from './socket/requests.js';
import { writeError } from './socket/write-response.js';

type AppDeps = UnaryDeps & {
  jsonOptions?: JsonOptions;
  services: readonly ServiceEntry[];
  publicRoutes?: (app: FastifyInstance) => void | Promise<void>;
  publicServices?: (router: ConnectRouter) => void;
  limits: Limits;
  /** Aborted when the server begins to close. */
  closing: AbortSignal;
  rest: RestHandler;
  /** Responds to a request that has no route. */
  notFound: (record: RequestRecord) => Promise<void>;
};

/** The routes of every surface. */
type App = {
  ready: () => Promise<void>;
  /** Routes a request. */
  serve: (record: RequestRecord) => void;
  close: () => Promise<void>;
};

/** Where a request keeps its record: a WeakMap costs the garbage collector more. */
const RECORD = Symbol('record');
type WithRecord = { [RECORD]?: RequestRecord };

type GetRecord = (request: FastifyRequest) => RequestRecord;

/**
 * Fastify with all routes. It is handed requests and never listens, because it has no server for HTTP/1.1 and HTTP/2 on
 * one port. It leaves bodies unread. Throws when two RPCs share a path and method.
 */
export function createApp(deps: AppDeps): App {
  const getRecord: GetRecord = ({ raw }) => {
    const record = (raw as WithRecord)[RECORD];
    if (record === undefined) throw new Error('a request reached Fastify without its record');
    return record;
  };
  const fastify = createFastify(deps, getRecord);
  registerRest(fastify, deps.rest, getRecord);
  registerPublicRoutes(fastify, deps, getRecord);
  const { publicServices } = deps;
  registerServices(fastify, { ...deps, getRecord });
  if (publicServices !== undefined) registerPublicServices(fastify, { ...deps, publicServices, getRecord });
  return {
    ready: async () => void (await fastify.ready()),
    serve(record) {
      const { req, res } = record;
      (req as WithRecord)[RECORD] = record;
      // Fastify is typed for HTTP/1.1 only, but routes both.
      fastify.routing(req as never, res as never);
    },
    close: async () => fastify.close(),
  };
}

function createFastify({ notFound, log, limits }: AppDeps, getRecord: GetRecord): FastifyInstance {
  const fastify = Fastify({
    logger: false,
    return503OnClosing: false,
    routerOptions: { maxParamLength: limits.maxHeaderBytes },
    frameworkErrors: (_error, request, reply) => {
      reply.hijack();
      void notFound(getRecord(request));
    },
  });
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser('*', (_request, _payload, done) => done(null));
  fastify.setNotFoundHandler((request, reply) => {
    reply.hijack();
    void notFound(getRecord(request));
  });
  fastify.setErrorHandler((error: Error & { statusCode?: number }, request, reply) => {
    reply.hijack();
    const record = getRecord(request);
    writeError(record, routeError(log, error, record));
  });
  return fastify;
}

/** Adds the routes of REST. A request is taken before Fastify looks at its body: the key is checked first. */
function registerRest(fastify: FastifyInstance, rest: RestHandler, getRecord: GetRecord): void {
  const add = (method: string, route: Route) => {
    if (!fastify.supportedMethods.includes(method)) fastify.addHttpMethod(method, { hasBody: true });
    fastify.route({
      method,
      url: routePattern(route.binding.template),
      exposeHeadRoute: false,
      onRequest: (request, reply) => {
        reply.hijack();
        void rest.serve(route, getRecord(request));
      },
      handler: () => {},
    });
  };
  for (const route of rest.routes) {
    const { httpMethod } = route.binding;
    add(httpMethod, route);
    if (httpMethod === 'GET') add('HEAD', route);
  }
}

function registerPublicRoutes(
  fastify: FastifyInstance,
  { publicRoutes, holdResponse }: AppDeps,
  getRecord: GetRecord,
): void {
  if (publicRoutes === undefined) return;
  fastify.register(async (scope) => {
    tellPeers(scope, (request) => getRecord(request).peer);
    scope.addHook('onRequest', async (request, reply) => {
      reply.header('x-request-id', getRecord(request).requestId);
    });
    scope.addHook('onSend', async (request, reply, payload) => {
      if (payload instanceof Readable) resetIfBroken(payload, reply.raw);
      const isBody = typeof payload === 'string' || payload instanceof Uint8Array;
      if (isBody && request.method !== 'HEAD') holdResponse(getRecord(request), payload.length);
    });
    await publicRoutes(scope);
  });
}

/** Resets a stream of HTTP/2 whose body breaks off: it would end like a whole one. */
function resetIfBroken(body: Readable, res: object): void {
  if (!('stream' in res)) return;
  const { stream } = res as Http2ServerResponse;
  body.once('error', () => stream.close(constants.NGHTTP2_INTERNAL_ERROR));
}

function routeError(log: Logger, error: Error & { statusCode?: number }, record: RequestRecord): ApiError {
  if (error instanceof ApiError) return error;
  const { statusCode = 500 } = error;
  if (statusCode === 415) {
    return new ApiError(ErrorCode.REQUEST_UNSUPPORTED_MEDIA_TYPE, 'the content type cannot be read');
  }
  if (statusCode < 500) return invalidRequest([{ path: '', message: 'cannot be understood' }]);
  log.error({ err: error, request_id: record.requestId }, 'a route failed');
  return internalError(record.requestId, error);
}
