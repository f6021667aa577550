import type { FastifyReply, FastifyRequest } from 'fastify';
import { etagOf, isNoneMatch } from './etag.js';

/**
 * Answers a public GET: with an entity tag (304 to those who have these bytes), readable by scripts of every web origin.
 *
 * @param cacheControl how long caches may keep it
 */
export function sendPublic(
  request: FastifyRequest,
  reply: FastifyReply,
  body: string | Uint8Array,
  contentType: string,
  cacheControl: string,
): FastifyReply {
  const bytes = Buffer.from(body);
  const etag = etagOf(bytes);
  void reply
    .header('access-control-allow-origin', '*')
    .header('cache-control', cacheControl)
    .header('etag', etag)
    .header('x-content-type-options', 'nosniff');
  if (isNoneMatch(request.headers['if-none-match'], etag)) return reply.code(304).send();
  return reply.type(contentType).send(bytes);
}
