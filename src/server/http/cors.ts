import type { RequestRecord } from './socket/requests.js';

/** Response headers that scripts may read beside the safelisted ones. */
const EXPOSED = [
  'x-request-id',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'ratelimit',
  'ratelimit-policy',
  'retry-after',
  'idempotent-replayed',
  'etag',
  'content-disposition',
  'grpc-status',
  'grpc-message',
  'grpc-status-details-bin',
].join(', ');
const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE';
const MAX_AGE_SECONDS = '7200';

/**
 * Lets pages of the given origins (`*` for all) call every protocol (CORS, Fetch standard). No cookies are
 * used, so credentials mode is not offered.
 *
 * @returns adds the headers; returns true if the request was a preflight, which is then responded to
 */
export function createCors(origins: readonly string[]): (record: RequestRecord) => boolean {
  const any = origins.includes('*');
  const allowed = new Set(origins);
  const varies = !any && allowed.size > 0;
  return ({ req, res, requestId }) => {
    const { origin } = req.headers;
    if (varies) res.setHeader('vary', 'origin');
    if (origin === undefined || !(any || allowed.has(origin))) return false;
    res.setHeader('access-control-allow-origin', any ? '*' : origin);
    if (req.method !== 'OPTIONS' || req.headers['access-control-request-method'] === undefined) {
      res.setHeader('access-control-expose-headers', EXPOSED);
      return false;
    }
    res.setHeader('access-control-allow-methods', METHODS);
    res.setHeader('access-control-allow-headers', req.headers['access-control-request-headers'] ?? '*');
    res.setHeader('access-control-max-age', MAX_AGE_SECONDS);
    res.setHeader('x-request-id', requestId);
    res.statusCode = 204;
    res.end();
    return true;
  };
}
