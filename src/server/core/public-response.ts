import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { ApiError } from './errors.js';
import { etagOf, isNoneMatch } from './etag.js';
import { acceptsGzip } from './gzip.js';

const ALLOWED = 'GET, HEAD, OPTIONS';
const PREFLIGHT_SECONDS = '7200';

/** What a public address has to say. */
export type PublicBody = {
  bytes: string | Uint8Array;
  contentType: string;
  /** How long caches may keep it. */
  cacheControl: string;
  /** The entity tag of `bytes` where it is known. */
  etag?: string;
  /** The same compressed, for those who take it: made when it is asked for, where it is a function. */
  gzipped?: Uint8Array | (() => Promise<Uint8Array>) | undefined;
};

/**
 * Answers a public GET: with an entity tag (304 to those who have these bytes), readable by scripts of every web origin.
 * A compressed body has the weak form of the tag, so either form is known again by the other.
 */
export async function sendPublic(
  request: FastifyRequest,
  reply: FastifyReply,
  { bytes, contentType, cacheControl, gzipped, etag }: PublicBody,
): Promise<FastifyReply> {
  const body = typeof bytes === 'string' ? Buffer.from(bytes) : bytes;
  const tag = etag ?? etagOf(body);
  const zips = gzipped !== undefined && acceptsGzip(request.headers['accept-encoding']);
  // Every origin gets the same answer: what the CORS of the API has set there would only divide caches.
  reply.raw.removeHeader('vary');
  if (gzipped !== undefined) void reply.header('vary', 'accept-encoding');
  void reply
    .header('access-control-allow-origin', '*')
    .header('access-control-expose-headers', 'etag, x-request-id')
    .header('cache-control', cacheControl)
    .header('etag', zips ? `W/${tag}` : tag)
    .header('x-content-type-options', 'nosniff');
  if (isNoneMatch(request.headers['if-none-match'], tag)) return reply.code(304).send();
  if (!zips) return reply.type(contentType).send(body);
  const zipped = typeof gzipped === 'function' ? await gzipped() : gzipped;
  return reply.header('content-encoding', 'gzip').type(contentType).send(zipped);
}

/**
 * Answers what is not a GET of a public path: OPTIONS with the methods there are, which lets scripts of every web origin
 * send headers of their own (`If-None-Match`), and the rest with `request.method_not_allowed`.
 */
export function answerOtherMethods(app: FastifyInstance, path: string): void {
  app.options(path, async (request, reply) =>
    reply
      .code(204)
      .header('allow', ALLOWED)
      .header('access-control-allow-origin', '*')
      .header('access-control-allow-methods', 'GET, HEAD')
      .header('access-control-allow-headers', request.headers['access-control-request-headers'] ?? '*')
      .header('access-control-max-age', PREFLIGHT_SECONDS)
      .send(),
  );
  app.route({
    method: ['POST', 'PUT', 'PATCH', 'DELETE'],
    url: path,
    handler: async ({ method }) => {
      const message = `this path has no ${method}, only ${ALLOWED}`;
      throw new ApiError(ErrorCode.REQUEST_METHOD_NOT_ALLOWED, message, {}, { allow: ALLOWED });
    },
  });
}
