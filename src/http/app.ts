import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { ConnectRouter } from '@connectrpc/connect';
import { fastifyConnectPlugin } from '@connectrpc/connect-fastify';
import { compressionGzip } from '@connectrpc/connect-node';
import Fastify, { type FastifyInstance, type FastifyRequest } from 'fastify';
import { ErrorCode } from '../../gen/attestation/v1/errors_pb.js';
import { ApiError } from '../errors.js';
import type { Logger } from '../logger.js';
import { connectContext } from './connect.js';
import { sendError } from './envelope.js';
import { internalError } from './failure.js';
import type { Limits } from './limits.js';
import type { RequestRecord } from './requests.js';

export type AppDeps = {
  server: Server;
  log: Logger;
  limits: Limits;
  /** The RPCs of our services. */
  routes: (router: ConnectRouter) => void;
  /** RPCs that anyone may call and that may stream: health, reflection. */
  moreRpcs: ((router: ConnectRouter) => void) | undefined;
  publicRoutes: ((app: FastifyInstance) => void | Promise<void>) | undefined;
  getRecord: (req: FastifyRequest['raw']) => RequestRecord;
  /** Answers what is no HTTP/1.1. */
  onClientError: (error: Error & { code?: string }, socket: Socket) => void;
  /** Answers what has no route here. */
  notFound: (record: RequestRecord) => void;
  /** Aborted when the server begins to close: ends streams that would not end by themselves. */
  closing: AbortSignal;
};

/** A message of a page of 200 submissions with their metadata stays well below. */
const MAX_RESPONSE_BYTES = 64 * 1024 * 1024;
/** Length prefix and field tags around a body of the permitted size. */
const MESSAGE_OVERHEAD_BYTES = 1024;
/** Below this, compressing costs more time than it saves. */
const MIN_COMPRESSED_BYTES = 16 * 1024;

/** Fastify with the RPCs and the public routes; bodies are left unread, as nobody but Connect takes one here. */
export function createApp(deps: AppDeps): FastifyInstance {
  const app = Fastify({
    serverFactory: () => deps.server,
    logger: false,
    forceCloseConnections: false,
    return503OnClosing: false,
    clientErrorHandler: deps.onClientError,
    frameworkErrors: (_error, request, reply) => {
      reply.hijack();
      deps.notFound(deps.getRecord(request.raw));
    },
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
  app.setNotFoundHandler((request, reply) => {
    reply.hijack();
    deps.notFound(deps.getRecord(request.raw));
  });
  app.setErrorHandler((error: Error & { statusCode?: number }, request, reply) => {
    reply.hijack();
    const record = deps.getRecord(request.raw);
    sendError(record, routeError(deps.log, error, record));
  });
  registerRpcs(app, deps);
  const { publicRoutes } = deps;
  if (publicRoutes !== undefined) app.register(async (scope) => publicRoutes(scope));
  return app;
}

function registerRpcs(app: FastifyInstance, deps: AppDeps): void {
  const options = {
    contextValues: (request: FastifyRequest) => connectContext(deps.getRecord(request.raw)),
    readMaxBytes: deps.limits.maxBodyBytes + MESSAGE_OVERHEAD_BYTES,
    writeMaxBytes: MAX_RESPONSE_BYTES,
    compressMinBytes: MIN_COMPRESSED_BYTES,
    acceptCompression: [compressionGzip],
    // A grpc-timeout beyond what a Node timer can hold would fire at once.
    maxTimeoutMs: 2 ** 31 - 1,
  };
  app.register(fastifyConnectPlugin, { ...options, routes: deps.routes });
  if (deps.moreRpcs === undefined) return;
  app.register(fastifyConnectPlugin, { ...options, routes: deps.moreRpcs, shutdownSignal: deps.closing });
}

function routeError(log: Logger, error: Error & { statusCode?: number }, record: RequestRecord): ApiError {
  if (error instanceof ApiError) return error;
  const { statusCode = 500 } = error;
  if (statusCode === 415) {
    return new ApiError(ErrorCode.REQUEST_UNSUPPORTED_MEDIA_TYPE, 'the content type cannot be read');
  }
  if (statusCode < 500) return new ApiError(ErrorCode.REQUEST_INVALID, 'the request cannot be understood');
  log.error({ err: error, request_id: record.requestId }, 'a route failed');
  return internalError(record.requestId, error);
}
