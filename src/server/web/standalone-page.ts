import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { deflateRawSync } from 'node:zlib';
import { escapeHtml } from './reference/html.js';

/** Trust roots for the page: their JSON text, where they are from, and when they were saved, in RFC 3339. */
type PageRoots = { text: string; from: string; savedAt: string };

const BUILT = new URL('../../../web/verify/', import.meta.url);
const SCRIPT = /<script type="module"[^>]* src="(\.\/assets\/[^"]+\.js)"><\/script>/;
const STYLE = /<link rel="stylesheet"[^>]* href="(\.\/assets\/[^"]+\.css)">/;

/** Inflates the program and runs it. The policy has the hash of both: nothing else can run. */
const LOADER = `(async () => {
  const deflated = Uint8Array.from(atob(document.querySelector('#program').textContent), (c) => c.charCodeAt(0));
  const script = document.createElement('script');
  script.type = 'module';
  script.textContent = await new Response(
    new Blob([deflated]).stream().pipeThrough(new DecompressionStream('deflate-raw')),
  ).text();
  document.body.append(script);
})().catch((error) => {
  document.querySelector('#page').textContent = 'This page cannot run here: ' + error.message;
});`;

/**
 * The verify page as one HTML file that loads nothing: script, style and trust roots are inside. Its policy lets it run
 * its own script only, and send nothing anywhere.
 */
export function standaloneVerifyPage(roots: PageRoots): string {
  const page = readFileSync(new URL('index.html', BUILT), 'utf8');
  const program = readLinked(page, SCRIPT);
  const style = readLinked(page, STYLE);
  const policy = [
    "default-src 'none'",
    `script-src ${sourceHash(LOADER)} ${sourceHash(program)}`,
    `style-src ${sourceHash(style)}`,
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  const body = [
    `<script type="application/json" id="trust-roots" data-origin="${escapeHtml(roots.from)}" data-saved-at="${escapeHtml(roots.savedAt)}">${inScript(roots.text)}</script>`,
    `<script type="text/plain" id="program">${deflateRawSync(program, { level: 9 }).toString('base64')}</script>`,
    `<script>${LOADER}</script>`,
  ];
  return page
    .replace('<head>', () => `<head>\n    <meta http-equiv="Content-Security-Policy" content="${policy}" />`)
    .replace(SCRIPT, '')
    .replace(STYLE, () => `<style>${style}</style>`)
    .replace('</body>', () => `${body.join('\n')}\n</body>`);
}

/** Reads the script or style that the page links to. */
function readLinked(page: string, link: RegExp): string {
  const [, path] = link.exec(page) ?? [];
  if (path === undefined) throw new Error('the verify page was not built as expected: run npm run build');
  return readFileSync(new URL(path, BUILT), 'utf8');
}

function sourceHash(source: string): string {
  return `'sha256-${hash('sha256', source, 'base64')}'`;
}

/** JSON that cannot end the script element that it is in; the same document to parsers of JSON. */
function inScript(json: string): string {
  return json.replaceAll('<', '\\u003c');
}
