import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { ApiError } from '../errors.js';
import { assertMatch, etagOf, isNoneMatch } from './etag.js';
import { acceptsGzip } from './gzip.js';

const ALLOWED = 'GET, HEAD, OPTIONS';
const PREFLIGHT_SECONDS = '7200';

/** The response of a public path. */
export type PublicResponse = {
  bytes: string | Uint8Array;
  contentType: string;
  /** The `Cache-Control` header. */
  cacheControl: string;
  /** The entity tag of `bytes`. Default: computed. */
  etag?: string;
  /** The bytes compressed by gzip, or a function that compresses them on demand, for a peer. */
  gzipped?: Uint8Array | ((peer?: string) => Promise<Uint8Array>) | undefined;
};

/**
 * Sends the response of a public GET: with an entity tag (304 if the client has these bytes) and CORS for every origin.
 * Throws `request.precondition_failed` if `If-Match` does not match. A compressed body has the weak form of the tag, so that either form matches the other.
 */
export async function sendPublic(
  request: FastifyRequest,
  reply: FastifyReply,
  { bytes, contentType, cacheControl, gzipped, etag }: PublicResponse,
): Promise<FastifyReply> {
  const body = typeof bytes === 'string' ? Buffer.from(bytes) : bytes;
  const tag = etag ?? etagOf(body);
  const zips = gzipped !== undefined && acceptsGzip(request.headers['accept-encoding']);
  // Every origin gets the same response: the `vary` that the API's CORS has set would only split caches.
  reply.raw.removeHeader('vary');
  if (reply.statusCode < 300) {
    // Set on `raw`, so that the error has it as well, which `reply` does not send.
    reply.raw.setHeader('access-control-allow-origin', '*');
    assertMatch(request.headers['if-match'], tag);
  }
  if (gzipped !== undefined) void reply.header('vary', 'accept-encoding');
  void reply
    .header('access-control-allow-origin', '*')
    .header('access-control-expose-headers', 'etag, x-request-id')
    .header('cache-control', cacheControl)
    .header('etag', zips ? `W/${tag}` : tag)
    .header('x-content-type-options', 'nosniff');
  if (isNoneMatch(request.headers['if-none-match'], tag)) return reply.code(304).send();
  if (!zips) return reply.type(contentType).send(body);
  const zipped = typeof gzipped === 'function' ? await gzipped(request.peer) : gzipped;
  return reply.header('content-encoding', 'gzip').type(contentType).send(zipped);
}

/**
 * Adds the other methods of a public path: OPTIONS allows scripts of every origin to send their own headers
 * (`If-None-Match`), the rest is rejected with `request.method_not_allowed`.
 */
export function handleOtherMethods(app: FastifyInstance, path: string): void {
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
