import { isUtf8 } from 'node:buffer';
import type { ConnectRouter } from '@connectrpc/connect';
import { fastifyConnectPlugin } from '@connectrpc/connect-fastify';
import Fastify, { type FastifyInstance, type FastifyRequest } from 'fastify';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { ApiError, internalError } from '../core/errors.js';
import type { Logger } from '../core/logger.js';
import { invalidRequest } from '../json/problems.js';
import { connectContext } from './connect/context.js';
import { dropEndlessDeadline } from './connect/rpc-deadline.js';
import { writeError } from './rest/write-response.js';
import type { Limits } from './socket/limits.js';
import type { HoldResponse } from './socket/memory.js';
import { pathOf, type RequestRecord } from './socket/requests.js';
import { boundStreams } from './socket/streams.js';

type AppDeps = {
  log: Logger;
  limits: Limits;
  /** RPCs that anyone may call and that may stream: health, reflection. */
  moreRpcs?: (router: ConnectRouter) => void;
  publicRoutes?: (app: FastifyInstance) => void | Promise<void>;
  /** Counts the bytes of responses until they are sent. */
  holdResponse: HoldResponse;
  /** Responds to a request that has no route here. */
  notFound: (record: RequestRecord) => void;
  /** Aborted when the server begins to close: ends streams that would not end by themselves. */
  closing: AbortSignal;
};

/** The RPCs that anyone may call, and the public routes. */
type App = {
  ready: () => Promise<void>;
  /** Routes a request. */
  serve: (record: RequestRecord) => void;
  close: () => Promise<void>;
};

type GetRecord = (request: FastifyRequest) => RequestRecord;

/**
 * Fastify with the public routes, and the RPCs that anyone may call. It is handed requests and never listens, because it
 * has no server for HTTP/1.1 and HTTP/2 on one port, and REST and the RPCs of our services are served without it. Bodies are left unread: only Connect takes one here.
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
  registerRpcs(fastify, deps, getRecord);
  registerPublicRoutes(fastify, deps, getRecord);
  return {
    ready: async () => void (await fastify.ready()),
    serve(record) {
      const { req, res } = record;
      if (!mayHaveRoute(pathOf(req.url))) return deps.notFound(record);
      dropEndlessDeadline(req);
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
      notFound(getRecord(request));
    },
  });
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser('*', (_request, _payload, done) => done(null));
  fastify.setNotFoundHandler((request, reply) => {
    reply.hijack();
    notFound(getRecord(request));
  });
  fastify.setErrorHandler((error: Error & { statusCode?: number }, request, reply) => {
    reply.hijack();
    const record = getRecord(request);
    writeError(record, routeError(log, error, record));
  });
  return fastify;
}

function registerRpcs(fastify: FastifyInstance, deps: AppDeps, getRecord: GetRecord): void {
  const { moreRpcs, limits, holdResponse, closing } = deps;
  if (moreRpcs === undefined) return;
  // A request that names something unknown is rejected, as ProtoJSON has it by default.
  const jsonOptions = { ignoreUnknownFields: false, textDecoder: { decode: jsonText } };
  fastify.register(fastifyConnectPlugin, {
    routes: moreRpcs,
    contextValues: (request: FastifyRequest) => connectContext(getRecord(request)),
    readMaxBytes: limits.maxPublicBytes,
    acceptCompression: [],
    jsonOptions,
    shutdownSignal: closing,
    interceptors: [boundStreams(limits, holdResponse, closing)],
  });
}

function registerPublicRoutes(
  fastify: FastifyInstance,
  { publicRoutes, holdResponse }: AppDeps,
  getRecord: GetRecord,
): void {
  if (publicRoutes === undefined) return;
  fastify.register(async (scope) => {
    scope.addHook('onSend', async (request, _reply, payload) => {
      const isBody = typeof payload === 'string' || payload instanceof Uint8Array;
      if (isBody && request.method !== 'HEAD') holdResponse(getRecord(request), payload.length);
    });
    await publicRoutes(scope);
  });
}

/** The JSON of a Connect request. Throws where Connect would put U+FFFD in the place of what is no UTF-8. */
function jsonText(bytes: Uint8Array = new Uint8Array()): string {
  if (!isUtf8(bytes)) throw new Error('a JSON text must be in UTF-8');
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
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
