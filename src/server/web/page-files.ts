import { readdirSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { etagOf } from '../core/http/etag.js';
import type { PublicResponse } from '../core/http/public-response.js';

/** The files of a page of `src/web/`, as `npm run build` bundled it. */
type PageFiles = {
  /** Returns the document. */
  readDocument(): PublicResponse;
  /** Returns a script or style by its name. Returns undefined if the page has none of this name. */
  readAsset(name: string): PublicResponse | undefined;
  /** Returns every script and style. */
  listAssets(): { name: string; file: PublicResponse }[];
};

const BUILT = new URL('../../../web/', import.meta.url);
const ASSET_TYPES: ReadonlyMap<string, string> = new Map([
  ['js', 'text/javascript; charset=utf-8'],
  ['css', 'text/css; charset=utf-8'],
  ['svg', 'image/svg+xml'],
]);
/** Its scripts are of this version only. */
const REVALIDATED = 'no-cache';
/** Names contain a hash of the content. */
const FOREVER = 'public, max-age=31536000, immutable';
const compress = promisify(gzip);

/** Opens the files of a page. Reads each when it is first requested, and keeps it: a page has a handful. */
export function openPageFiles(name: string): PageFiles {
  const folder = new URL(`${name}/`, BUILT);
  const kept = new Map<string, PublicResponse>();
  const read = (key: string, make: () => PublicResponse): PublicResponse => {
    const known = kept.get(key) ?? make();
    kept.set(key, known);
    return known;
  };
  let names: ReadonlySet<string> | undefined;
  const readNames = () => {
    names ??= new Set(readdirSync(new URL('assets/', folder)));
    return names;
  };
  const readAsset = (asset: string) => {
    const contentType = ASSET_TYPES.get(asset.split('.').at(-1) ?? '');
    if (contentType === undefined || !readNames().has(asset)) return undefined;
    return read(`asset ${asset}`, () =>
      fileOf(readFileSync(new URL(`assets/${asset}`, folder)), { contentType, cacheControl: FOREVER }),
    );
  };
  return {
    readDocument: () =>
      read('document', () =>
        fileOf(readFileSync(new URL('index.html', folder)), {
          contentType: 'text/html; charset=utf-8',
          cacheControl: REVALIDATED,
        }),
      ),
    readAsset,
    listAssets: () =>
      [...readNames()].flatMap((name) => {
        const file = readAsset(name);
        return file === undefined ? [] : [{ name, file }];
      }),
  };
}

/** A file as a response, compressed when that is first asked for. */
export function fileOf(
  bytes: Uint8Array,
  { contentType, cacheControl }: Pick<PublicResponse, 'contentType' | 'cacheControl'>,
): PublicResponse {
  let zipped: Promise<Uint8Array> | undefined;
  const gzipped = () => {
    zipped ??= compress(bytes, { level: 9 });
    return zipped;
  };
  return { bytes, contentType, cacheControl, etag: etagOf(bytes), gzipped };
}
