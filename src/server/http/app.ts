import { constants, type Http2ServerResponse } from 'node:http2';
import { Readable } from 'node:stream';
import Fastify, { type FastifyInstance, type FastifyRequest } from 'fastify';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { ApiError, internalError } from '../core/errors.js';
import { tellPeers } from '../core/http/request-peer.js';
import type { Logger } from '../core/logger.js';
import { invalidRequest } from '../json/problems.js';
import type { HoldResponse } from './socket/bodies.js';
import { pathOf, type RequestRecord } from './socket/requests.js';
import { writeError } from './socket/write-response.js';

type AppDeps = {
  log: Logger;
  publicRoutes?: (app: FastifyInstance) => void | Promise<void>;
  /** Counts the bytes of responses until they are sent. */
  holdResponse: HoldResponse;
  /** Responds to a request that has no route here. */
  notFound: (record: RequestRecord) => Promise<void>;
};

/** The public routes. */
type App = {
  ready: () => Promise<void>;
  /** Routes a request. */
  serve: (record: RequestRecord) => void;
  close: () => Promise<void>;
};

type GetRecord = (request: FastifyRequest) => RequestRecord;

/**
 * Fastify with the public routes. It is handed requests and never listens, because it has no server for HTTP/1.1 and
 * HTTP/2 on one port, and REST and RPCs are served without it. Bodies are left unread.
 */
export function createApp(deps: AppDeps): App {
  const records = new WeakMap<object, RequestRecord>();
  const getRecord: GetRecord = ({ raw }) => {
    const record = records.get(raw);
    if (record === undefined) throw new Error('a request reached Fastify without its record');
    return record;
  };
  const fastify = createFastify(deps, getRecord);
  const mayHaveRoute = collectRoutes(fastify);
  registerPublicRoutes(fastify, deps, getRecord);
  return {
    ready: async () => void (await fastify.ready()),
    serve(record) {
      const { req, res } = record;
      if (!mayHaveRoute(pathOf(req.url))) return void deps.notFound(record);
      res.setHeader('x-request-id', record.requestId);
      records.set(req, record);
      // Fastify is typed for HTTP/1.1 only, but routes both.
      fastify.routing(req as never, res as never);
    },
    close: async () => fastify.close(),
  };
}

/**
 * Collects the first segments of all routes that are registered from now on. The result rejects most unknown paths
 * without Fastify, whose way to `notFound` takes 30 µs of CPU, as long as all the rest of such a request.
 */
function collectRoutes(fastify: FastifyInstance): (path: string) => boolean {
  const firstSegments = new Set<string | undefined>();
  fastify.addHook('onRoute', ({ url }) => void firstSegments.add(url.split('/')[1]));
  return (path) => path.includes('%') || firstSegments.has(path.split('/', 2)[1]);
}

function createFastify({ notFound, log }: AppDeps, getRecord: GetRecord): FastifyInstance {
  const fastify = Fastify({
    logger: false,
    return503OnClosing: false,
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

function registerPublicRoutes(
  fastify: FastifyInstance,
  { publicRoutes, holdResponse }: AppDeps,
  getRecord: GetRecord,
): void {
  if (publicRoutes === undefined) return;
  fastify.register(async (scope) => {
    tellPeers(scope, (request) => getRecord(request).peer);
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
