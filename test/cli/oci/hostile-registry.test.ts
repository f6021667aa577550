/** Registries that break, lie, or want to learn the credentials. */

import { writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { getImage } from '../../../src/cli/oci/manifest.js';
import { parseReference } from '../../../src/cli/oci/reference.js';
import { openRepository } from '../../../src/cli/oci/repository.js';
import { makeServerTls } from '../../support/certificates/server-tls.js';
import { startDockerRegistry } from '../../support/registries/docker-registry.js';
import { MANIFEST, putImage } from '../../support/registries/image.js';
import {
  INDEX,
  type Intercept,
  startReferrersRegistry,
} from '../../support/registries/referrers-registry.js';
import { serve } from '../../support/witnesses/openssl-tsa.js';
import { REPOSITORY, startService } from './attested-image.js';

const { attest, submit, writeBundle } = await startService(t);

/** An image, as every registry here has it, and its bundle. */
const original = await startReferrersRegistry(t);
const digest = await putImage(original, REPOSITORY, '1.0');
const id = await submit(digest);
const bundle = await writeBundle(t.testdir(), id);

/** A registry with the image, which breaks. */
async function scene(t: Test, breaks: Intercept) {
  const registry = await startReferrersRegistry(t, breaks);
  for (const [name, stored] of original.manifests) registry.manifests.set(name, stored);
  const name = `${registry.host}/${REPOSITORY}`;
  const dir = t.testdir();
  const auth = Buffer.from('builder:s3cret').toString('base64');
  writeFileSync(join(dir, 'config.json'), JSON.stringify({ auths: { [registry.host]: { auth } } }));
  const image = `${name}@${digest}`;
  const push = (reference = image) => attest(['push', reference, '--bundle', bundle], { DOCKER_CONFIG: dir });
  return { ...registry, image, push, tagged: `${name}:1.0` };
}

/** Answers requests of a method and kind. */
function on(
  method: string,
  kind: string,
  answer: (response: ServerResponse, url: string) => unknown,
): Intercept {
  return ({ method: of, url = '' }, response) => {
    if (of !== method || !url.includes(`/${kind}/`)) return false;
    answer(response, url);
    return true;
  };
}

/** Writes without an end, as fast as it is read. */
function flood(response: ServerResponse): void {
  const piece = Buffer.alloc(1024 * 1024, ' ');
  const write = () => {
    while (!response.destroyed && response.write(piece));
  };
  response.on('drain', write);
  write();
}

const json =
  (status: number, body: object, headers: object = {}) =>
  (response: ServerResponse) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));

const errors = (code: string, message: string) => ({ errors: [{ code, message }] });

t.test('answers that break the protocol end the command with one line', async (t) => {
  const cases: [string, Intercept, RegExp][] = [
    ['an endless manifest', on('GET', 'manifests', flood), /answers with more than 4 MiB/],
    [
      'an endless error',
      on('GET', 'manifests', (response) => flood(response.writeHead(500))),
      /more than 1 MiB/,
    ],
    [
      'another manifest',
      on('GET', 'manifests', json(200, { mediaType: MANIFEST })),
      /the manifest that .* has for sha256:\w+ is another one: sha256:/,
    ],
    ['a cut connection', on('GET', 'manifests', (response) => response.destroy()), /cannot be reached/],
    [
      'a cut body',
      on('GET', 'manifests', (response) => {
        response.writeHead(200, { 'content-length': '100' }).write('{');
        response.socket?.end();
      }),
      /cannot be reached/,
    ],
    [
      'a refusal',
      on('GET', 'manifests', json(403, errors('DENIED', 'no\u001b[2J'))),
      /not allow this in .*DENIED, no\ufffd/,
    ],
    [
      'a rate limit',
      on('GET', 'manifests', json(429, {}, { 'retry-after': '7' })),
      /rate of requests, try again in 7 s/,
    ],
    [
      'a failure',
      on('POST', 'blobs', json(500, errors('UNKNOWN', 'disk'))),
      /answers HTTP 500: UNKNOWN, disk/,
    ],
    [
      'a failure in prose',
      on('PUT', 'manifests', (response) => response.writeHead(502).end('<html>')),
      /HTTP 502$/m,
    ],
    [
      'an odd 401',
      on('GET', 'manifests', json(401, {}, { 'www-authenticate': 'Negotiate' })),
      /in no known way/,
    ],
    ['a bare 401', on('GET', 'manifests', json(401, {})), /in no known way/],
    [
      'an endless 401',
      on('GET', 'manifests', json(401, {}, { 'www-authenticate': 'Basic realm="x"' })),
      /does not accept the credentials of/,
    ],
    [
      'a realm that is none',
      on('GET', 'manifests', json(401, {}, { 'www-authenticate': 'Bearer realm="file:///etc/passwd"' })),
      /names no https address for its tokens/,
    ],
    [
      'no upload address',
      on('POST', 'blobs', (response) => response.writeHead(202).end()),
      /names no address/,
    ],
    [
      'an odd upload address',
      on('POST', 'blobs', (response) => response.writeHead(202, { location: 'ftp://x/' }).end()),
      /names no address/,
    ],
    [
      'a redirected upload',
      on('PUT', 'blobs', (response, url) => response.writeHead(307, { location: url }).end()),
      /redirects where it must not/,
    ],
    [
      'redirects in a circle',
      on('GET', 'manifests', (response, url) => response.writeHead(307, { location: url }).end()),
      /redirects where it must not, or too often/,
    ],
    [
      'another manifest stored',
      on('PUT', 'manifests', (response) =>
        response.writeHead(201, { 'docker-content-digest': 'sha256:0' }).end(),
      ),
      /stored another manifest: sha256:0/,
    ],
  ];
  for (const [what, breaks, stderr] of cases) {
    const { push } = await scene(t, breaks);
    const said = await push();
    t.match(said, { code: 1, stdout: '', stderr }, what);
    t.equal(said.stderr.trim().split('\n').length, 1, what);
    t.notMatch(said.stderr, /s3cret/, what);
  }
});

t.test('a tag whose manifest is cut off, or is not what its header says, is not attached to', async (t) => {
  const typed = (body: string, headers: object = {}) =>
    on('GET', 'manifests', (response) =>
      response.writeHead(200, { 'content-type': MANIFEST, ...headers }).end(body),
    );
  const cases: [Intercept, RegExp][] = [
    [typed('{"mediaType":'), /is no manifest of an image/],
    [typed('[]'), /is no manifest of an image/],
    [typed('{"mediaType":"text/html"}'), /is no manifest of an image/],
    [typed('{"mediaType":"a","mediaType":"b"}'), /is no manifest of an image/],
    [typed('{}', { 'docker-content-digest': `sha256:${'0'.repeat(64)}` }), /is another one/],
    [typed('{}'), /not about sha256:/],
  ];
  for (const [breaks, stderr] of cases) {
    const { push, tagged, requests } = await scene(t, breaks);
    t.match(await push(tagged), { stdout: '', stderr });
    t.notOk(requests.some((request) => /^(POST|PUT)/.test(request)));
  }
});

t.test('a list of referrers is not read, however long', async (t) => {
  const { push, requests } = await scene(
    t,
    on('GET', 'referrers', (response, url) => {
      flood(response.writeHead(200, { 'content-type': INDEX, link: `<${url}?n=1>; rel="next"` }));
    }),
  );
  t.match(await push(), { code: 0, stdout: / attached / });
  t.equal(requests.filter((request) => request.includes('/referrers/')).length, 1);
});

t.test('another host is shown no credentials', async (t) => {
  const shown: (string | undefined)[] = [];
  const asked: string[] = [];
  const stranger = await serve((request, response) => {
    asked.push(request.url ?? '');
    shown.push(request.headers.authorization);
    response
      .writeHead(401, { 'www-authenticate': `Bearer realm="http://${request.headers.host}/token"` })
      .end();
  });
  t.teardown(stranger.close);
  const wantsPassword: Intercept = ({ headers }, response) => {
    if (headers.authorization !== undefined) return false;
    response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end();
    return true;
  };
  const away = (response: ServerResponse) =>
    response.writeHead(307, { location: `${stranger.url}away` }).end();
  const upload = (response: ServerResponse) =>
    response.writeHead(202, { location: `${stranger.url}up` }).end();
  for (const leads of [on('GET', 'manifests', away), on('POST', 'blobs', upload)]) {
    const { push, requests } = await scene(t, (...args) => wantsPassword(...args) || leads(...args));
    t.match(await push(), { code: 1, stdout: '' });
    t.ok(requests.some((request) => request.endsWith(' authorized')));
  }
  t.same(
    asked.map((path) => path.split('?')[0]),
    ['/away', '/up'],
  );
  t.same(shown, [undefined, undefined]);
  // Before the registry itself has asked, too.
  const { push } = await scene(t, on('GET', 'manifests', away));
  t.match(await push(), { code: 1 });
  t.same(shown, [undefined, undefined, undefined]);
});

t.test('a registry that does not answer, or not to the end, is left in time', async (t) => {
  for (const breaks of [
    on('GET', 'manifests', () => {}),
    on('GET', 'manifests', (response) => response.writeHead(200).write('{')),
  ]) {
    const { image, host } = await scene(t, breaks);
    const reference = parseReference(image);
    const options = { actions: 'pull', findCredentials: async () => undefined, isPlain: true } as const;
    const repository = openRepository(reference, { ...options, fetch, timeoutMs: 200 });
    await t.rejects(getImage(repository, reference), {
      message: `${host} cannot be reached: no answer in 0.2 s`,
    });
  }
});

t.test('https is spoken but to this machine, and its certificate is verified', async (t) => {
  const { tls, caFile } = await makeServerTls(t, 'IP:0.0.0.0');
  const dir = t.testdir({ 'key.pem': String(tls.key), 'cert.pem': String(tls.cert) });
  const files = { certificate: join(dir, 'cert.pem'), key: join(dir, 'key.pem') };
  const address = await startDockerRegistry(t, 'open', { tls: files });
  const host = address.replace('127.0.0.1', '0.0.0.0');
  const push = (env = {}, ...flags: string[]) =>
    attest(['push', `${host}/${REPOSITORY}:1`, '--bundle', bundle, ...flags], env);
  t.match(await push(), { code: 1, stderr: /cannot be reached: .*ATTEST_CA_FILE/ });
  t.match(await push({ ATTEST_CA_FILE: caFile }), { code: 1, stderr: /there is no image 1 in/ });
  t.match(await push({}, '--plain-http'), { code: 1, stderr: /answers HTTP 400/ });
  const elsewhere = `${original.host.replace('127.0.0.1', '0.0.0.0')}/${REPOSITORY}:1.0`;
  t.match(await attest(['push', elsewhere, id]), { code: 1, stderr: /cannot be reached/ });
  t.match(await attest(['push', elsewhere, id, '--plain-http']), { code: 0, stdout: / attached / });
});

t.test('an index of referrers that others overwrite is written again, but not for ever', async (t) => {
  let overwritten = 0;
  let times = 1;
  const registry = await startReferrersRegistry(t, ({ method, url = '' }, response) => {
    if (url.includes('/referrers/')) {
      response.writeHead(404).end();
      return true;
    }
    if (method !== 'PUT' || !url.includes('/manifests/sha256-') || overwritten >= times) return false;
    overwritten++;
    response.writeHead(201).end();
    return true;
  });
  for (const [name, stored] of original.manifests) registry.manifests.set(name, stored);
  const image = `${registry.host}/${REPOSITORY}@${digest}`;
  t.match(await attest(['push', image, id]), { code: 0, stdout: / attached / });
  t.equal(overwritten, 1);
  registry.manifests.delete(digest.replace(':', '-'));
  times = Number.POSITIVE_INFINITY;
  t.match(await attest(['push', image, id]), {
    code: 1,
    stderr: /others write the referrers .*: push again/,
  });
  t.equal(overwritten, 4);
});
