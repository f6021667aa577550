import { readdirSync, readFileSync } from 'node:fs';
import type { FastifyInstance } from 'fastify';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { ApiError } from '../../core/errors.js';
import { handleOtherMethods, type PublicResponse, sendPublic } from '../../core/http/public-response.js';
import { escapeHtml } from '../html.js';
import { fileOf, openPageFiles } from '../page-files.js';
import { confinePage } from '../page-policy.js';
import { BASE_URL, VERIFY_URL } from './addresses.js';

/** The service's addresses as the world sees them, asked for with the first request. */
type DocsOptions = { baseUrl: () => string; verifyUrl: () => string };

const FOLDER = new URL('../../../../web/docs/files/', import.meta.url);
const TYPES: ReadonlyMap<string, string> = new Map([
  ['html', 'text/html; charset=utf-8'],
  ['json', 'application/json'],
  ['svg', 'image/svg+xml'],
]);
/** Files that the documents link to, such as clients: sources to read. */
const OTHER_TYPE = 'text/plain; charset=utf-8';
/** The ending of a file; a page has none in its address, and a folder none at all. */
const ENDING = /\.(?!html$)[^./]+$/;
const CACHE = 'public, max-age=300';

/** Adds the documentation at `/docs`: pages that `npm run build` rendered, the search's index, scripts and styles. */
export function docsRoutes(app: FastifyInstance, options: DocsOptions): void {
  const assets = openPageFiles('docs');
  const findFile = createFileFinder(options);
  const serve = (route: string, find: (path: string) => PublicResponse | undefined) => {
    app.get<{ Params: { '*'?: string } }>(route, async (request, reply) => {
      const found = find(request.params['*'] ?? '');
      if (found === undefined)
        throw new ApiError(ErrorCode.ROUTE_NOT_FOUND, 'the documentation has no such page');
      return sendPublic(request, confinePage(reply), found);
    });
    handleOtherMethods(app, route);
  };
  serve('/docs', () => findFile('docs'));
  serve('/docs/*', (path) => findFile(`docs/${path}`));
  serve('/docs/assets/*', (name) => assets.readAsset(name));
}

/** Finds the file of an address, `docs/keys` being `docs/keys.html`. Each is read once, with the service's addresses in it. */
function createFileFinder({ baseUrl, verifyUrl }: DocsOptions): (path: string) => PublicResponse | undefined {
  const kept = new Map<string, PublicResponse>();
  let names: ReadonlySet<string> | undefined;
  const read = (name: string): PublicResponse => {
    const text = readFileSync(new URL(name, FOLDER), 'utf8')
      .replaceAll(BASE_URL, escapeHtml(baseUrl()))
      .replaceAll(VERIFY_URL, escapeHtml(verifyUrl()));
    const contentType = TYPES.get(name.split('.').at(-1) ?? '') ?? OTHER_TYPE;
    return fileOf(Buffer.from(text), { contentType, cacheControl: CACHE });
  };
  return (path) => {
    names ??= new Set(readdirSync(FOLDER, { recursive: true, encoding: 'utf8' }));
    const isPage = names.has(`${path}.html`);
    const name = isPage ? `${path}.html` : path;
    if (!isPage && !(ENDING.test(path) && names.has(path))) return undefined;
    const file = kept.get(name) ?? read(name);
    kept.set(name, file);
    return file;
  };
}
