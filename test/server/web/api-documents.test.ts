import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { createFileRegistry, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import t from 'tap';
import { startApp } from '../../support/app.js';
import { publicMethods, rpcName } from '../../support/calling/rpcs.js';

const app = await startApp(t);
const PATHS = ['/openapi.json', '/descriptor.binpb', '/docs', '/docs/reference.css'];

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

t.test(
  'the reference page works without a network: it loads its style sheet from here and nothing else',
  async (t) => {
    const { headers, body } = await app.rest('/docs');
    t.equal(headers['content-type'], 'text/html; charset=utf-8');
    t.equal(
      headers['content-security-policy'],
      "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    const page = body.toString();
    t.notMatch(
      page,
      /<(?:script|img|iframe|object|embed|video|audio|base|form|svg)\b/i,
      'nothing that loads or runs',
    );
    t.notMatch(page, /\s(?:style|on\w+|src|srcset|action|data|poster)=/i, 'no attribute that loads or runs');
    const links = [...page.matchAll(/\shref="([^"]*)"/g)].map(([, target = '']) => target);
    t.strictSame([...new Set(links.filter((target) => !target.startsWith('#')))].sort(), [
      'descriptor.binpb',
      'docs/reference.css',
      'openapi.json',
    ]);
    const anchors = new Set([...page.matchAll(/\sid="([^"]*)"/g)].map(([, id = '']) => id));
    t.strictSame(
      links.filter((target) => target.startsWith('#') && !anchors.has(target.slice(1))),
      [],
      'every link inside leads somewhere',
    );
    const { body: style } = await app.rest('/docs/reference.css');
    t.notMatch(style.toString(), /url\(|@import|https?:/i);
  },
);

t.test('the reference page has every operation, webhook and schema', async (t) => {
  const { json } = await app.rest('/openapi.json');
  const page = (await app.rest('/docs')).body.toString();
  const document = json as unknown as {
    paths: Record<string, Record<string, { operationId: string }>>;
    webhooks: Record<string, Record<string, { operationId: string }>>;
    components: { schemas: object };
  };
  const items = [...Object.values(document.paths), ...Object.values(document.webhooks)];
  for (const { operationId } of items.flatMap((item) => Object.values(item))) {
    t.ok(page.includes(`<article id="${operationId}">`), operationId);
  }
  for (const name of Object.keys(document.components.schemas)) {
    t.ok(page.includes(`id="schema-${name}"`), name);
  }
});
