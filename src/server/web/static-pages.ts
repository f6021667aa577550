import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { ApiError } from '../core/errors.js';

/** A page of the build, with its assets. */
type StaticPage = {
  /** Its folder in `dist/web/`. */
  name: string;
  /** The path that it is served at, without a slash at its end; its assets are in `<path>/assets/`. */
  path: string;
  /** Whether every path below that is not a file is the page itself, which then has routes of its own. */
  hasRoutes: boolean;
  /** Sources beside those of the service itself, by directive of the Content-Security-Policy. */
  sources?: Readonly<Record<string, string>>;
};

/** A file as it is sent, plain and compressed. */
type StaticFile = { body: Buffer; br: Buffer; gzip: Buffer; contentType: string; cacheControl: string };

/** The page of the dashboard. */
export const DASHBOARD: StaticPage = { name: 'dashboard', path: '/dashboard', hasRoutes: true };

const BUILT = new URL('../../../web/', import.meta.url);
const HASHED = 'assets/';
const INDEX = 'index.html';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.json': 'application/json',
};

const POLICY: Readonly<Record<string, string>> = {
  'default-src': "'none'",
  'script-src': "'self'",
  'style-src': "'self'",
  'connect-src': "'self'",
  'img-src': "'self' data:",
  'frame-ancestors': "'none'",
  'base-uri': "'none'",
  'form-action': "'self'",
};

const compressBrotli = promisify(brotliCompress);
const compressGzip = promisify(gzip);
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } };

/**
 * Serves a page of `dist/web/` and its assets. Nothing is read before the first request. Assets, whose names contain a
 * hash of their content, may be cached for ever, the page itself not at all.
 */
export function staticPageRoutes(app: FastifyInstance, page: StaticPage): void {
  const read = createFileReader(new URL(`${page.name}/`, BUILT));
  const policy = policyOf(page);
  const send = async (request: FastifyRequest, reply: FastifyReply) => {
    const name = pathIn(page, request.url);
    const file = (await read(name)) ?? (isRoute(page, name) ? await read(INDEX) : undefined);
    if (file === undefined) throw new ApiError(ErrorCode.ROUTE_NOT_FOUND, 'there is no file of this name');
    return sendFile(request, reply, file, policy);
  };
  app.get(page.path, send);
  app.get(`${page.path}/*`, send);
}

/** The Content-Security-Policy of a page. */
function policyOf({ sources = {} }: StaticPage): string {
  return Object.entries({ ...POLICY, ...sources })
    .map(([directive, value]) => `${directive} ${value}`)
    .join('; ');
}

/** The name of the file that a request target means. */
function pathIn({ path }: StaticPage, url: string): string {
  const [target = ''] = url.split('?', 1);
  return target.slice(path.length + 1) || INDEX;
}

/** What has no extension can be a route; the assets never are. */
function isRoute({ hasRoutes }: StaticPage, name: string): boolean {
  return hasRoutes && !name.startsWith(HASHED) && extname(name) === '';
}

/** Reads files of a folder by name, each once. Only what is in the folder has a name, so no name leads out of it. */
function createFileReader(folder: URL): (name: string) => Promise<StaticFile | undefined> {
  let names: ReadonlySet<string> | undefined;
  const files = new Map<string, Promise<StaticFile>>();
  return async (name) => {
    names ??= new Set(readdirSync(fileURLToPath(folder), { recursive: true, encoding: 'utf8' }));
    if (!names.has(name) || TYPES[extname(name)] === undefined) return undefined;
    const file = files.get(name) ?? readStaticFile(folder, name);
    files.set(name, file);
    return file;
  };
}

async function readStaticFile(folder: URL, name: string): Promise<StaticFile> {
  const body = await readFile(new URL(name, folder));
  return {
    body,
    br: await compressBrotli(body, BROTLI),
    gzip: await compressGzip(body),
    contentType: TYPES[extname(name)] ?? '',
    cacheControl: name.startsWith(HASHED) ? 'public, max-age=31536000, immutable' : 'no-store',
  };
}

function sendFile(
  request: FastifyRequest,
  reply: FastifyReply,
  { body, contentType, cacheControl, ...compressed }: StaticFile,
  policy: string,
): FastifyReply {
  const accepted = (request.headers['accept-encoding'] ?? '').split(',').map((one) => one.trim());
  const encoding = (['br', 'gzip'] as const).find((name) => accepted.includes(name));
  // Every origin gets the same file: the `vary` that the API's CORS has set would only split caches.
  reply.raw.removeHeader('vary');
  void reply
    .header('content-security-policy', policy)
    .header('cross-origin-opener-policy', 'same-origin')
    .header('cross-origin-resource-policy', 'same-origin')
    .header('x-content-type-options', 'nosniff')
    .header('x-frame-options', 'DENY')
    .header('referrer-policy', 'no-referrer')
    .header('cache-control', cacheControl)
    .header('vary', 'accept-encoding')
    .type(contentType);
  if (encoding === undefined) return reply.send(body);
  return reply.header('content-encoding', encoding).send(compressed[encoding]);
}
