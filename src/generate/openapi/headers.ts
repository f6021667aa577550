import type { JsonObject } from '@bufbuild/protobuf';
import { refTo } from './components.js';

/** A response header in the document; `required` if every response that lists it has it. */
type Header = { description: string; required?: true; schema: JsonObject; example: string | number };

const COUNT: JsonObject = { type: 'integer', minimum: 0 };
const REQUEST_ID_PATTERN = '^req_[0-7][0-9A-HJKMNP-TV-Z]{25}$';

/** Response headers by lower-case name, as src/server/http writes them. */
const HEADERS: Readonly<Record<string, Header>> = {
  'x-request-id': {
    required: true,
    description: 'The id of the request, for the operator; errors repeat it.',
    schema: { type: 'string', pattern: REQUEST_ID_PATTERN },
    example: 'req_01KE8G5JQ2M9X4T7V0B3N6R8SW',
  },
  'x-ratelimit-limit': {
    required: true,
    description: 'How many calls the tightest rate window of the API key admits.',
    schema: COUNT,
    example: 600,
  },
  'x-ratelimit-remaining': {
    required: true,
    description: 'How many are left in it.',
    schema: COUNT,
    example: 599,
  },
  'x-ratelimit-reset': {
    required: true,
    description: 'When the next window starts, in seconds since 1970.',
    schema: COUNT,
    example: 1767323047,
  },
  ratelimit: {
    required: true,
    description:
      'Every rate window: what is left in it (`r`), and in how many seconds the next starts (`t`).',
    schema: { type: 'string' },
    example: '"reads-1s";r=599;t=1',
  },
  'ratelimit-policy': {
    required: true,
    description: 'Every rate window: how many calls it admits (`q`), and its length in seconds (`w`).',
    schema: { type: 'string' },
    example: '"reads-1s";q=600;w=1',
  },
  location: {
    required: true,
    description: 'The path of the resource.',
    schema: { type: 'string', format: 'uri-reference' },
    example: '/entries/sub_01KE8G5JQ2M9X4T7V0B3N6R8SW',
  },
  'retry-after': {
    description: 'After how many seconds to try again.',
    schema: { type: 'integer', minimum: 1 },
    example: 2,
  },
  'www-authenticate': {
    required: true,
    description: 'The scheme of the credentials that are wanted.',
    schema: { type: 'string', const: 'Bearer' },
    example: 'Bearer',
  },
  'idempotent-replayed': {
    description: 'There when the answer is that of an earlier request with the same idempotency key.',
    schema: { type: 'string', const: 'true' },
    example: 'true',
  },
  etag: {
    required: true,
    description: 'An entity tag over the bytes of the body; a weak one when the answer is compressed.',
    schema: { type: 'string', pattern: '^(?:W/)?"[A-Za-z0-9_-]{43}"$' },
    example: '"47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"',
  },
  'cache-control': {
    required: true,
    description:
      'Whether the answer may be kept: `no-store`, or, where it has an entity tag, by the caller alone, who asks again with it.',
    schema: { type: 'string', enum: ['no-store', 'private, no-cache'] },
    example: 'no-store',
  },
  'content-disposition': {
    required: true,
    description: 'That the answer is a file, and its name.',
    schema: { type: 'string', pattern: '^attachment; filename="[^"]+"$' },
    example: 'attachment; filename="sub_01KE8G5JQ2M9X4T7V0B3N6R8SW.bundle.json"',
  },
};

/** Headers whose case differs from capitalised words. */
const CASES: Readonly<Record<string, string>> = {
  'x-ratelimit-limit': 'X-RateLimit-Limit',
  'x-ratelimit-remaining': 'X-RateLimit-Remaining',
  'x-ratelimit-reset': 'X-RateLimit-Reset',
  ratelimit: 'RateLimit',
  'ratelimit-policy': 'RateLimit-Policy',
  'www-authenticate': 'WWW-Authenticate',
  etag: 'ETag',
};

/** Headers of every response to a counted call. */
export const RATE_HEADERS = [
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'ratelimit',
  'ratelimit-policy',
] as const;

/** The headers section of the components. */
export function headerComponents(): JsonObject {
  return Object.fromEntries(Object.entries(HEADERS).map(([name, header]) => [headerCase(name), header]));
}

/** Refers to response headers by their lower-case names. Throws if a name is unknown here. */
export function headerRefs(names: readonly string[]): JsonObject {
  return Object.fromEntries(names.map((name) => [headerCase(name), headerRef(name)]));
}

function headerRef(name: string): JsonObject {
  if (HEADERS[name] === undefined) throw new Error(`no description of the header ${name}`);
  return refTo('headers', headerCase(name));
}

function headerCase(name: string): string {
  return CASES[name] ?? name.replace(/(?<![a-z])[a-z]/g, (letter) => letter.toUpperCase());
}
