import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { deflateRawSync } from 'node:zlib';
import { escapeHtml } from './html.js';

/** Trust roots for the page: their JSON text, where they are from, and when they were saved, in RFC 3339. */
type PageRoots = { text: string; from: string; savedAt: string };

const BUILT = new URL('../../../web/verify/', import.meta.url);
const SCRIPT = /<script type="module"[^>]* src="(\.\/assets\/[^"]+\.js)"><\/script>/;
const STYLE = /<link rel="stylesheet"[^>]* href="(\.\/assets\/[^"]+\.css)">/;

/** Inflates the packed parts, inserts them, and runs the program. The policy has the hash of both: nothing else runs. */
const LOADER = `(async () => {
  for (const element of document.querySelectorAll('script[type="text/plain"]')) {
    const deflated = Uint8Array.from(atob(element.textContent), (c) => c.charCodeAt(0));
    element.textContent = await new Response(
      new Blob([deflated]).stream().pipeThrough(new DecompressionStream('deflate-raw')),
    ).text();
  }
  for (const [name, id] of [['style', '#styles'], ['script', '#program']]) {
    const element = document.createElement(name);
    if (name === 'script') element.type = 'module';
    element.textContent = document.querySelector(id).textContent;
    document.body.append(element);
  }
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
    packed(
      `id="trust-roots" data-origin="${escapeHtml(roots.from)}" data-saved-at="${escapeHtml(roots.savedAt)}"`,
      roots.text,
    ),
    packed('id="styles"', style),
    packed('id="program"', program),
    `<script>${LOADER}</script>`,
  ];
  return page
    .replace('<head>', () => `<head>\n    <meta http-equiv="Content-Security-Policy" content="${policy}" />`)
    .replace(SCRIPT, '')
    .replace(STYLE, '')
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

/** A text for the loader to inflate, in an element that nothing runs. */
function packed(attributes: string, text: string): string {
  const deflated = deflateRawSync(text, { level: 9 }).toString('base64');
  return `<script type="text/plain" ${attributes}>${deflated}</script>`;
}
