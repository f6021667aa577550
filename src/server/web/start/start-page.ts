import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { handleOtherMethods, type PublicResponse, sendPublic } from '../../core/http/public-response.js';
import { type Html, html } from '../html.js';

/** The addresses that the page leads to; `hasDashboard`: whether this listener has it. */
type StartPageOptions = { baseUrl: () => string; verifyUrl: () => string; hasDashboard: boolean };

const CACHE = 'public, max-age=300';
const ICONS = [
  { path: '/favicon.ico', file: './favicon.ico', contentType: 'image/x-icon' },
  { path: '/favicon.svg', file: './favicon.svg', contentType: 'image/svg+xml' },
];

/**
 * Adds what a person finds who knows only the address: a page that leads on, the icon, and redirections from `/verify`
 * and `/docs/` to where these pages are. The page runs no script and loads nothing but the icon.
 */
export function startPageRoutes(app: FastifyInstance, options: StartPageOptions): void {
  const serve = (path: string, make: () => PublicResponse, headers: () => Record<string, string>) => {
    let made: PublicResponse | undefined;
    app.get(path, async (request, reply) => {
      made ??= make();
      return sendPublic(request, reply.headers(headers()), made);
    });
    handleOtherMethods(app, path);
  };
  serve('/', () => pageResponse(options), pageHeaders);
  for (const { path, file, contentType } of ICONS) {
    const make = () => ({
      bytes: readFileSync(new URL(file, import.meta.url)),
      contentType,
      cacheControl: CACHE,
    });
    serve(path, make, () => ({ 'content-security-policy': "default-src 'none'" }));
  }
  redirect(app, '/verify', () => `${options.verifyUrl()}/`);
  redirect(app, '/docs/', () => `${options.baseUrl()}/docs`);
}

function redirect(app: FastifyInstance, path: string, target: () => string): void {
  app.get(path, async (_request, reply: FastifyReply) =>
    reply.header('cache-control', CACHE).redirect(target(), 302),
  );
  handleOtherMethods(app, path);
}

const style = once(() =>
  ['../look.css', './start.css'].map((file) => readFileSync(new URL(file, import.meta.url), 'utf8')).join(''),
);

const pageHeaders = once((): Record<string, string> => {
  const hash = createHash('sha256').update(style()).digest('base64');
  const policy = [
    "default-src 'none'",
    `style-src 'sha256-${hash}'`,
    "img-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  return { 'content-security-policy': policy.join('; '), 'referrer-policy': 'no-referrer' };
});

function pageResponse(options: StartPageOptions): PublicResponse {
  const bytes = Buffer.from(`<!doctype html>\n${renderPage(options).html}`);
  const contentType = 'text/html; charset=utf-8';
  return { bytes, gzipped: gzipSync(bytes), contentType, cacheControl: CACHE };
}

function renderPage({ baseUrl, verifyUrl, hasDashboard }: StartPageOptions): Html {
  const base = baseUrl();
  const verify = verifyUrl();
  const curl = `curl ${base}/v1/attestations -H "Authorization: Bearer $ATTEST_API_KEY"`;
  return html`<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Attestation service</title>
<link rel="icon" href="favicon.svg" type="image/svg+xml">
<style>${{ html: style() }}</style>
</head>
<body>
<main>
<h1>Attestation service</h1>
<p>It records the SHA-256 of artifacts in an append-only public log. Independent witnesses date the log, and each
submission gets a proof that anyone can verify offline.</p>
<ul>
${card(`${verify}/`, 'Verify a proof', 'Drop a file and its proof bundle. Your browser checks them and uploads nothing.')}
${hasDashboard ? card('dashboard', 'Dashboard', 'Submissions, API keys, webhooks, exports and the audit log. For those who sign in.') : undefined}
${card('docs', 'Documentation', 'Quick start, guides, and every call of the API with examples and its errors.')}
${card(`${verify}/trust_roots.json`, 'Trust roots', 'The keys, certificates and policies that verifiers trust. Keep a copy.')}
</ul>
<h2>With an API key</h2>
<pre tabindex="0">${curl}</pre>
<footer>For programs: <a href="openapi.json">OpenAPI document</a>, <a href="descriptor.binpb">descriptors</a>, <a href="${verify}/log/live">public log</a>.</footer>
</main>
</body>
</html>
`;
}

function card(href: string, title: string, text: string): Html {
  return html`<li><a href="${href}">${title}</a><p>${text}</p></li>`;
}

/** A function that makes something when it is first called, and then keeps it. */
function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
