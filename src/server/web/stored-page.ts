/** The verify page as files of a store, from which it is opened while no API process runs. */
import type { PublicResponse } from '../core/http/public-response.js';
import { openPageFiles } from './page-files.js';
import { POLICY } from './page-policy.js';

/** A file by its name below `VERIFY_URL`. */
type PageFile = {
  readonly name: string;
  readonly kind: Pick<PublicResponse, 'contentType' | 'cacheControl'>;
  readonly content: Buffer;
};

/** The document, and the scripts and styles that it names. */
export type StoredPage = { readonly document: PageFile; readonly assets: readonly PageFile[] };

/** Reads the page. A store sends no policy with it, so that the document has its own. */
export function readStoredPage(): StoredPage {
  const files = openPageFiles('verify');
  const policy = `<meta http-equiv="Content-Security-Policy" content="${POLICY.join('; ')}" />`;
  const served = pageFile('index.html', files.readDocument());
  const confined = served.content.toString().replace('<head>', () => `<head>\n    ${policy}`);
  return {
    document: { ...served, content: Buffer.from(confined) },
    assets: files.listAssets().map(({ name, file }) => pageFile(`assets/${name}`, file)),
  };
}

function pageFile(name: string, { bytes, contentType, cacheControl }: PublicResponse): PageFile {
  return { name, kind: { contentType, cacheControl }, content: Buffer.from(bytes as Uint8Array) };
}
