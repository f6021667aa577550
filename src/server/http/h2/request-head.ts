import type { IncomingHttpHeaders } from 'node:http';
import type { Field } from './fields.js';

/** The header section of a request (RFC 9113, section 8.3.1). */
export type RequestHead = {
  method: string;
  /** The value of `:path`; of CONNECT empty. */
  path: string;
  /** The value of `:authority`. */
  authority: string | undefined;
  /** As Node's http has them: those that come again are joined, or the first holds. */
  headers: IncomingHttpHeaders;
  /** Names and values in turn, as they came. */
  rawHeaders: string[];
  contentLength: number | undefined;
};

type Pseudo = { ':method'?: string; ':scheme'?: string; ':authority'?: string; ':path'?: string };

/** Fields of which the first holds, as Node has it. */
const SINGLE: ReadonlySet<string> = new Set([
  'access-control-max-age',
  'access-control-request-method',
  'age',
  'authorization',
  'content-encoding',
  'content-language',
  'content-length',
  'content-location',
  'content-md5',
  'content-range',
  'content-type',
  'date',
  'etag',
  'expires',
  'from',
  'host',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'last-modified',
  'location',
  'max-forwards',
  'proxy-authorization',
  'range',
  'referer',
  'retry-after',
  'tk',
  'upgrade-insecure-requests',
  'user-agent',
  'x-content-type-options',
]);
const DIGITS = /^\d{1,15}$/;

/** Makes the head of a request. Returns undefined if it is malformed (RFC 9113, sections 8.2 and 8.3). */
export function readRequestHead(fields: readonly Field[]): RequestHead | undefined {
  const pseudo: Pseudo = {};
  const headers = { __proto__: null } as unknown as IncomingHttpHeaders;
  const rawHeaders: string[] = [];
  for (const field of fields) {
    const { name, value, kind } = field;
    if (kind === 'malformed') return undefined;
    if (kind === 'pseudo') {
      if (rawHeaders.length > 0 || pseudo[name as keyof Pseudo] !== undefined) return undefined;
      pseudo[name as keyof Pseudo] = value;
    } else {
      rawHeaders.push(name, value);
      if (!addHeader(headers, name, value)) return undefined;
    }
  }
  const length = headers['content-length'];
  if (length !== undefined && !DIGITS.test(length)) return undefined;
  const contentLength = length === undefined ? undefined : Number(length);
  return withTarget(pseudo, { headers, rawHeaders, contentLength });
}

/** Returns false for two lengths that differ. */
function addHeader(headers: IncomingHttpHeaders, name: string, value: string): boolean {
  const existing = headers[name];
  if (existing === undefined) headers[name] = name === 'set-cookie' ? [value] : value;
  else if (SINGLE.has(name)) return name !== 'content-length' || existing === value;
  else if (Array.isArray(existing)) existing.push(value);
  // Section 8.2.3.
  else headers[name] = `${existing}${name === 'cookie' ? '; ' : ', '}${value}`;
  return true;
}

function withTarget(
  { ':method': method, ':scheme': scheme, ':authority': authority, ':path': path }: Pseudo,
  rest: Pick<RequestHead, 'headers' | 'rawHeaders' | 'contentLength'>,
): RequestHead | undefined {
  if (method === undefined || method === '') return undefined;
  if (method === 'CONNECT') {
    // Section 8.5.
    if (scheme !== undefined || path !== undefined || authority === undefined) return undefined;
    return { method, path: '', authority, ...rest };
  }
  if (scheme === undefined || path === undefined) return undefined;
  const isTarget = path.startsWith('/') || (path === '*' && method === 'OPTIONS');
  return isTarget ? { method, path, authority, ...rest } : undefined;
}

/** Whether fields may be trailers (RFC 9113, section 8.1). */
export function areTrailers(fields: readonly Field[]): boolean {
  return fields.every(({ kind }) => kind === 'regular');
}
