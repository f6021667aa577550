import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { ApiError } from '../core/errors.js';
import { invalidRequest } from '../json/problems.js';
import type { NodeRequest } from './socket/requests.js';

/** Prefix of all REST paths. */
const REST_PREFIX = '/v1/';
const ABSOLUTE_FORM = /^https?:\/\/[^/?#]*/i;
/** Headers that must not be repeated: Node shows the first of two, a proxy may have used the second. */
const SINGLE: ReadonlyMap<number, string> = new Map(
  ['host', 'authorization', 'content-type'].map((name) => [name.length, name]),
);
/** Header fields of a request. As many as Node's HTTP/1.1 reads by default, which ignores those beyond. */
const MAX_HEADERS = 1000;
const CLOSE = { connection: 'close' };

/** Whether a request target in origin form is one of REST. */
export function isRest(target: string): boolean {
  return target.startsWith(REST_PREFIX);
}

/**
 * Rewrites a request target in absolute form (RFC 9112, section 3.2.2) to origin form. Throws `request.invalid` for
 * a request without a host, or whose host and path make no URL: Fastify and Connect expect both.
 */
export function normalizeTarget(req: NodeRequest): void {
  const url = req.url ?? '';
  if (!url.startsWith('/')) req.url = url.replace(ABSOLUTE_FORM, '') || '/';
  const host = 'authority' in req ? req.authority : req.headers.host;
  if (host === undefined && req.httpVersion !== '1.0') throw invalid('names no host');
  if (isRest(req.url ?? '')) return;
  if (host === undefined) req.headers.host = 'localhost';
  if (!URL.canParse(req.url ?? '', `http://${host ?? 'localhost'}`)) {
    throw invalid('has a host and a path that make no URL');
  }
}

/**
 * Throws for a request that two servers could read differently: `request.headers_too_large` for more header fields than
 * are read, `request.invalid` if Host (RFC 9112, section 3.2), Authorization or Content-Type is repeated, or if Host and `:authority` differ (RFC 9113, section 8.3.1), and
 * `request.unsupported_transfer_coding` for a transfer coding besides chunked (RFC 9112, section 6.1).
 */
export function assertUnambiguous(req: NodeRequest): void {
  const { rawHeaders, headers } = req;
  if (rawHeaders.length > 2 * MAX_HEADERS) {
    const message = `the request has more than ${MAX_HEADERS} header fields`;
    throw new ApiError(ErrorCode.REQUEST_HEADERS_TOO_LARGE, message, {}, CLOSE);
  }
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    const single = SINGLE.get(name.length);
    if (single === undefined || name.toLowerCase() !== single) continue;
    if (comesAgain(rawHeaders, i + 2, single)) throw invalid(`has the header ${single} twice`);
  }
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') {
    const message = 'of transfer codings only chunked is understood';
    throw new ApiError(ErrorCode.REQUEST_UNSUPPORTED_TRANSFER_CODING, message, {}, CLOSE);
  }
  if ('authority' in req && headers.host !== undefined && headers.host !== req.authority) {
    throw invalid('has a host header that is not its authority');
  }
}

function comesAgain(rawHeaders: readonly string[], from: number, wanted: string): boolean {
  for (let i = from; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (name.length === wanted.length && name.toLowerCase() === wanted) return true;
  }
  return false;
}

function invalid(message: string): ApiError {
  return invalidRequest([{ path: '', message }]);
}

/** Decodes percent-encoded UTF-8; undefined when it is malformed. A plus sign is a plus sign. */
export function decodePercent(text: string): string | undefined {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** The same, save that an encoded slash stays as it is written: `%2F` is part of a segment, `/` parts segments. */
export function decodeExceptSlash(text: string): string | undefined {
  if (!text.includes('%')) return text;
  // The group keeps the slashes as they are written. No UTF-8 sequence is torn: 2F is never a part of one.
  const parts = text.split(/(%2f)/i).map((part) => (/^%2f$/i.test(part) ? part : decodePercent(part)));
  return parts.includes(undefined) ? undefined : parts.join('');
}
