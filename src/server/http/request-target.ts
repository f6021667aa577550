import type { ApiError } from '../core/errors.js';
import { invalidRequest } from '../json/problems.js';
import type { NodeRequest } from './socket/requests.js';

/** Where all REST endpoints are. */
const REST_PREFIX = '/v1/';
const ABSOLUTE_FORM = /^https?:\/\/[^/?#]*/i;

/** Who answers a request: REST, or the public app, which Connect's RPCs are part of. */
export function surfaceFor(req: NodeRequest): 'rest' | 'app' {
  return req.url?.startsWith(REST_PREFIX) ? 'rest' : 'app';
}

/**
 * Brings a request target in absolute form (RFC 9112, section 3.2.2) to the usual one, and throws `request.invalid` for
 * a request without a host, or whose host and path make no URL: frameworks further in expect both.
 */
export function normalizeTarget(req: NodeRequest): void {
  const url = req.url ?? '';
  if (!url.startsWith('/')) req.url = url.replace(ABSOLUTE_FORM, '') || '/';
  const host = 'authority' in req ? req.authority : req.headers.host;
  if (host === undefined && req.httpVersion !== '1.0') throw invalid('names no host');
  if (surfaceFor(req) === 'rest') return;
  if (host === undefined) req.headers.host = 'localhost';
  if (!URL.canParse(req.url ?? '', `http://${host ?? 'localhost'}`)) {
    throw invalid('has a host and a path that make no URL');
  }
}

function invalid(message: string): ApiError {
  return invalidRequest([{ path: '', message }]);
}
