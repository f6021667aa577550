import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { createFileRegistry, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import t from 'tap';
import { startApp } from '../../support/app.js';
import { publicMethods, rpcName } from '../../support/calling/rpcs.js';

const app = await startApp(t);
const PATHS = [
  '/openapi.json',
  '/descriptor.binpb',
  '/docs',
  '/docs/api/createAttestation',
  '/docs/clients/go/main.go',
];

t.test('the descriptions of the API are for everyone, every web origin, and caches', async (t) => {
  for (const path of PATHS) {
    const { status, headers, body } = await app.rest(path);
    t.equal(status, 200, path);
    t.equal(headers['access-control-allow-origin'], '*');
    t.equal(headers['x-content-type-options'], 'nosniff');
    t.match(headers['cache-control'], /^public, max-age=\d+$/);
    t.match(headers['x-request-id'], /^req_/);
    t.match(headers.etag, /^"[\w-]{43}"$/);
    const again = await app.rest(path, { headers: { 'if-none-match': headers.etag as string } });
    t.equal(again.status, 304, 'the tag is known again');
    t.equal(again.body.length, 0);
    const head = await app.rest(path, { method: 'HEAD' });
    t.equal(head.status, 200);
    t.equal(Number(head.headers['content-length']), body.length);
    const small = await app.rest(path, { headers: { 'accept-encoding': 'br, gzip' } });
    t.match(small.headers, {
      'content-encoding': 'gzip',
      vary: 'accept-encoding',
      etag: `W/${headers.etag}`,
    });
    t.ok(gunzipSync(small.body).equals(body), 'compressed for those who take it');
    t.ok(small.body.length < body.length);
    const wrong = await app.rest(path, { method: 'POST' });
    t.ok([404, 405].includes(wrong.status), `POST is refused with ${wrong.status}`);
  }
});

t.test('the root page links the API documents, without a script', async (t) => {
  const { status, headers, body } = await app.rest('/');
  t.match({ status, headers }, { status: 200, headers: { 'content-type': 'text/html; charset=utf-8' } });
  const page = body.toString();
  const [, style = ''] = /<style>(.*)<\/style>/s.exec(page) ?? [];
  const hash = createHash('sha256').update(style).digest('base64');
  t.equal(
    headers['content-security-policy'],
    `default-src 'none'; style-src 'sha256-${hash}'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  );
  t.notMatch(page, /<script|style="/);
  const links = [...page.matchAll(/href="([^"]+)"/g)].map(([, href = '']) => new URL(href, app.baseUrl).href);
  t.ok(links.length >= 8);
  for (const url of links) t.equal((await fetch(url, { redirect: 'error' })).status, 200, url);
  for (const [path, target] of [
    ['/verify', `${app.verifyUrl}/`],
    ['/docs/', `${app.baseUrl}/docs`],
  ] as const) {
    t.match(await app.rest(path), { status: 302, headers: { location: target } });
    t.equal((await app.rest(path, { method: 'POST' })).status, 405);
  }
  t.match(await app.rest('/favicon.ico'), { status: 200, headers: { 'content-type': 'image/x-icon' } });
  for (const path of [
    '/index.html',
    '/verify/x',
    '/docs/x',
    '/favicon.png',
    '//evil.example',
    '/verify//x',
  ]) {
    t.equal((await app.rest(path)).status, 404, path);
  }
});

t.test('the OpenAPI document names the address it is served at', async (t) => {
  const { headers, json } = await app.rest('/openapi.json');
  t.equal(headers['content-type'], 'application/json');
  t.match(json, { openapi: /^3\.1\./, servers: [{ url: app.baseUrl }] });
});

t.test(
  'the descriptors are complete in themselves, with comments, and hold public packages only',
  async (t) => {
    const { headers, body } = await app.rest('/descriptor.binpb');
    t.equal(headers['content-type'], 'application/x-protobuf');
    const set = fromBinary(FileDescriptorSetSchema, body);
    const registry = createFileRegistry(set);
    for (const method of await publicMethods()) {
      const found = registry.getService(method.parent.typeName)?.method[method.localName];
      t.equal(found?.output.typeName, method.output.typeName, rpcName(method));
    }
    const packages = new Set(set.file.map((file) => file.package));
    t.strictSame([...packages].sort(), [
      'attestation.options.v1',
      'attestation.v1',
      'buf.validate',
      'google.api',
      'google.protobuf',
    ]);
    const ours = set.file.filter((file) => file.package === 'attestation.v1');
    for (const { name, sourceCodeInfo } of ours) {
      t.ok(
        sourceCodeInfo?.location.some(({ leadingComments }) => leadingComments),
        `${name} has comments`,
      );
    }
  },
);

t.test('the documentation loads its styles and scripts from here and nothing else', async (t) => {
  const { headers, body } = await app.rest('/docs');
  t.equal(headers['content-type'], 'text/html; charset=utf-8');
  const policy = headers['content-security-policy'] ?? '';
  for (const rule of [
    "default-src 'none'",
    "script-src 'self';",
    "style-src 'self';",
    "trusted-types 'none'",
  ]) {
    t.ok(policy.includes(rule), rule);
  }
  t.notMatch(policy, /unsafe|\*/);
  const page = body.toString();
  const loaded = [...page.matchAll(/<(?:script|link|img)[^>]*\s(?:src|href)="([^"]*)"/g)].map(
    ([, path = '']) => path,
  );
  t.ok(loaded.length >= 3);
  for (const path of loaded) {
    const { status, body: file } = await app.rest(path);
    t.equal(status, 200, path);
    if (path.endsWith('.css')) t.notMatch(file.toString(), /url\(|@import|https?:/i, path);
  }
  for (const path of [
    '/docs/docs',
    '/docs/nothing',
    '/docs/keys.html',
    '/docs/keys.md',
    '/docs/clients',
    '/docs/clients/go',
    '/docs/assets',
    '/docs/assets/x.js',
    '/docs/%2e%2e/index.html',
    '/docs/..%2f..%2findex.html',
    '/docs/keys%00',
    `/docs/${'a'.repeat(2000)}`,
  ]) {
    t.match(await app.rest(path), { status: 404 }, path);
  }
});

t.test('the reference has a page for every operation and webhook, and every schema', async (t) => {
  const { json } = await app.rest('/openapi.json');
  const document = json as unknown as {
    paths: Record<string, Record<string, { operationId: string; summary: string }>>;
    webhooks: Record<string, Record<string, { operationId: string; summary: string }>>;
    components: { schemas: object };
  };
  const items = [...Object.values(document.paths), ...Object.values(document.webhooks)];
  for (const { operationId, summary } of items.flatMap((item) => Object.values(item))) {
    const { body } = await app.rest(`/docs/api/${operationId}`);
    t.ok(body.toString().includes(`<h1>${summary}</h1>`), operationId);
    t.match(summary, /^\S+(?: \S+){1,3}$/, 'its title has two to four words');
  }
  const schemas = (await app.rest('/docs/api/schemas')).body.toString();
  for (const name of Object.keys(document.components.schemas)) {
    t.ok(schemas.includes(`id="schema-${name}"`), name);
  }
});
