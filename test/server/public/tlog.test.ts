import { connect as connectHttp2 } from 'node:http2';
import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { openCheckpoint } from '../../../src/proof/log/checkpoint.js';
import { parseVerifierKey } from '../../../src/proof/log/note.js';
import { startApp } from '../../support/app.js';
import { exchangeRaw, parseRaw } from '../../support/calling/raw-http.js';
import type { RestAnswer } from '../../support/calling/rpc-clients.js';
import { http2Exchange } from '../../support/calling/surfaces.js';
import { newKey, type TestKey } from '../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { creation } from '../rpc/samples.js';
import { leafHashOf, pathOf, splitEntries, splitHashes, tilesOf, treeHash } from './tree-of-tiles.js';

const app = await startApp(t);
const live = await newKey(app);
const test = await newKey(app, { environment: Environment.TEST });
const LEAVES = { live: 600, test: 3 } as const;
const leafHashes = { live: await fillLog(live, LEAVES.live), test: await fillLog(test, LEAVES.test) };
await app.drain();

type Name = keyof typeof LEAVES;
const NAMES: readonly Name[] = ['live', 'test'];
const DOCUMENTS = ['trust_roots.json', 'trusted_root.json', 'trusted_root.test.json'];

/** Creates so many leaves. @returns their hashes as their submitters were told, by index */
async function fillLog({ key }: TestKey, count: number): Promise<string[]> {
  const hashes: string[] = [];
  for (let made = 0; made < count; made += 100) {
    const some = Array.from({ length: Math.min(100, count - made) }, (_, i) =>
      app.rest('/v1/attestations', { apiKey: key, body: creation(String(i).padStart(64, '0')) }),
    );
    for (const { json } of await Promise.all(some)) hashes[Number(json.log_index)] = String(json.leaf_sha256);
    await app.drain();
  }
  return hashes;
}

function get(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<RestAnswer> {
  return app.rest(`/verify/${path}`, { headers, method });
}

async function bytesOf(path: string): Promise<Buffer> {
  const { status, body } = await get(path);
  if (status !== 200) throw new Error(`${path} is answered with ${status}`);
  return body;
}

/** The newest checkpoint of a log, checked against the key that the trust roots publish. */
async function checkpointOf(name: Name): Promise<{ size: number; rootHash: Uint8Array }> {
  const { transparency_logs } = JSON.parse((await bytesOf('trust_roots.json')).toString());
  const log = transparency_logs.find(({ environment }: JsonObject) => environment === name);
  const note = (await bytesOf(`log/${name}/checkpoint`)).toString();
  return openCheckpoint(note, parseVerifierKey(log.verifier_key));
}

t.test(
  'the whole log can be walked by HTTP alone, and its leaves make the root that was signed',
  async (t) => {
    for (const name of NAMES) {
      const { size, rootHash } = await checkpointOf(name);
      t.equal(size, LEAVES[name]);
      const entries: Buffer[] = [];
      for (const path of tilesOf('entries', size))
        entries.push(...splitEntries(await bytesOf(`log/${name}/${path}`)));
      const hashes = entries.map(leafHashOf);
      t.same(
        hashes.map((hash) => hash.toString('hex')),
        leafHashes[name],
        'as their submitters were told',
      );
      t.ok(treeHash(hashes).equals(rootHash), `${name}: the root of ${size} leaves`);
      for (const entry of entries)
        t.match(JSON.parse(entry.toString()), { kind: 'hashedrekord', apiVersion: '0.0.2' });
    }
  },
);

t.test('every tile holds the hashes of the tiles or leaves below it', async (t) => {
  for (const name of NAMES) {
    let below: Buffer[] = leafHashes[name].map((hash) => Buffer.from(hash, 'hex'));
    for (let level = 0; below.length > 0; level++) {
      const tiles: Buffer[] = [];
      for (const path of tilesOf(level, below.length))
        tiles.push(...splitHashes(await bytesOf(`log/${name}/${path}`)));
      t.ok(Buffer.concat(tiles).equals(Buffer.concat(below)), `${name}, level ${level}`);
      const full = Math.floor(below.length / 256);
      below = Array.from({ length: full }, (_, i) => treeHash(tiles.slice(i * 256, i * 256 + 256)));
    }
  }
});

t.test('a tile is served in every width up to that of the log, immutable, and no wider', async (t) => {
  const tile = await bytesOf('log/live/tile/0/002.p/88');
  const entries = splitEntries(await bytesOf('log/live/tile/entries/002.p/88'));
  for (const width of [1, 2, 87, 88]) {
    t.ok((await bytesOf(`log/live/tile/0/002.p/${width}`)).equals(tile.subarray(0, width * 32)));
    const some = splitEntries(await bytesOf(`log/live/tile/entries/002.p/${width}`));
    t.same(some, entries.slice(0, width));
  }
  const full = await bytesOf('log/live/tile/0/000');
  t.ok((await bytesOf('log/live/tile/0/000.p/255')).equals(full.subarray(0, 255 * 32)), 'also of a full one');
  for (const path of [
    '0/002',
    '0/002.p/89',
    '0/003',
    '0/003.p/1',
    '1/000',
    '1/000.p/3',
    '1/001.p/1',
    '2/000.p/1',
  ]) {
    t.equal((await get(`log/live/tile/${path}`)).status, 404, path);
  }
});

t.test('unpublished checkpoints and tiles are not served', async (t) => {
  const seal = await app.holdSealing();
  const before = await checkpointOf('test');
  await app.rest('/v1/attestations', { apiKey: test.key, body: creation('e'.repeat(64)) });
  t.same(await checkpointOf('test'), before);
  const next = pathOf('entries', 0, before.size + 1);
  t.equal((await get(`log/test/${next}`)).status, 404);
  t.equal((await get(`log/test/${pathOf(0, 0, before.size + 1)}`)).status, 404);
  await seal();
  await app.drain();
  t.equal((await checkpointOf('test')).size, before.size + 1);
  t.equal((await get(`log/test/${next}`)).status, 200);
});

t.test('paths of no tile are 404 in every encoding', async (t) => {
  const odd = [
    ...[
      '',
      '0',
      '0/',
      '0/0',
      '0/00',
      '0/0000',
      '00/000',
      '0/x000/000',
      '0/000/',
      '0/000.p',
      '0/000.p/',
      '0/000.p/0',
    ],
    ...[
      '0/000.p/256',
      '0/000.p/257',
      '0/000.p/01',
      '0/000.p/1/2',
      '0/000.P/1',
      '-1/000',
      '0/-01',
      '64/000',
      '1e1/000',
    ],
    ...[
      '0/x00/000',
      '0/999/000',
      '0/x999/x999/x999/x999/x999/x999/999',
      'Entries/000',
      'entries/000.p/0',
      'entries/',
    ],
    ...[
      '../checkpoint',
      '%2e%2e/checkpoint',
      '0/%30%30%30%00',
      '0/000%2f',
      '0/000%20',
      '0/000.p/+1',
      '%zz',
      '%ff',
    ],
    ...['0/000?x=1/../../..', `0/${'x000/'.repeat(500)}000`, 'data/000', 'entries/%2e%2e/0/000', '0/００0'],
  ];
  const { port } = new URL(app.baseUrl);
  for (const path of odd.filter((each) => !each.includes('?'))) {
    const line = `GET /verify/log/live/tile/${encodeURI(path).replaceAll('%25', '%')} HTTP/1.1`;
    const answer = parseRaw(
      await exchangeRaw(Number(port), `${line}\r\nhost: a\r\nconnection: close\r\n\r\n`),
    );
    t.equal(answer.status, 404, path);
    t.notMatch(answer.body, /attestation\.v1|signature|PUBLIC KEY/);
  }
  t.equal((await get('log/live/tile/0/000?x=1')).status, 200, 'a query makes no difference');
  for (const name of [
    'Live',
    'live-1',
    'live-2',
    'live.',
    'prod',
    '..',
    '%2e%2e',
    'x'.repeat(200),
    '1',
    'live%00',
  ]) {
    const line = `GET /verify/log/${name}/checkpoint HTTP/1.1`;
    const answer = parseRaw(
      await exchangeRaw(Number(port), `${line}\r\nhost: a\r\nconnection: close\r\n\r\n`),
    );
    t.equal(answer.status, 404, name);
  }
});

t.test('trust roots are the same bytes as the API answers', async (t) => {
  const answer = await app.rest('/v1/service/trust_roots', { apiKey: live.key });
  t.ok((await bytesOf('trust_roots.json')).equals(answer.body));
});

t.test('each trusted root names the log of its environment and its authorities', async (t) => {
  const roots = JSON.parse((await bytesOf('trust_roots.json')).toString());
  const [authority] = roots.timestamp_authorities;
  for (const [file, name] of [
    ['trusted_root.json', 'live'],
    ['trusted_root.test.json', 'test'],
  ]) {
    const root = JSON.parse((await bytesOf(String(file))).toString());
    t.equal(root.mediaType, 'application/vnd.dev.sigstore.trustedroot+json;version=0.1');
    t.same(
      root.tlogs.map(({ baseUrl }: JsonObject) => baseUrl),
      [`https://${name}.log.example.com`],
    );
    t.same(
      root.timestampAuthorities[0].certChain.certificates.map(({ rawBytes }: JsonObject) => rawBytes),
      authority.cert_chain_pem.map((pem: string) => pem.replace(/-----.*?-----|\s/g, '')),
    );
  }
});

t.test('everything is cacheable for as long as it holds, and any page may read it', async (t) => {
  const immutable = 'public, max-age=31536000, immutable';
  const documents: [path: string, cache: string | RegExp, type: string][] = [
    ...DOCUMENTS.map((path): [string, RegExp, string] => [
      path,
      /^public, max-age=\d{1,3}$/,
      'application/json',
    ]),
    ['log/live/checkpoint', /^public, max-age=\d$/, 'text/plain; charset=utf-8'],
    ['log/live/tile/0/000', immutable, 'application/octet-stream'],
    ['log/live/tile/entries/002.p/7', immutable, 'application/octet-stream'],
  ];
  for (const [path, cache, type] of documents) {
    const { headers, body } = await get(path, { origin: 'https://elsewhere.example' });
    t.match(headers, {
      'access-control-allow-origin': '*',
      'cache-control': cache,
      'content-type': type,
      'x-content-type-options': 'nosniff',
    });
    t.match(headers['x-request-id'], /^req_/);
    const etag = String(headers.etag);
    t.match(etag, /^"[\w-]{43}"$/);
    for (const tag of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
      const again = await get(path, { 'if-none-match': tag });
      t.equal(again.status, 304, `${path} with ${tag}`);
      t.equal(again.body.length, 0);
      t.match(again.headers, { etag, 'cache-control': cache, 'access-control-allow-origin': '*' });
    }
    t.equal((await get(path, { 'if-none-match': '"x"' })).status, 200);
    const head = await get(path, {}, 'HEAD');
    t.match(head, { status: 200, headers: { etag, 'content-length': String(body.length) } });
  }
  const missing = await get('log/live/tile/0/999');
  t.match(missing.headers, { 'access-control-allow-origin': '*' });
  t.notMatch(missing.headers['cache-control'], 'immutable');
});

t.test('the mirror is served over HTTP/2 as well', async (t) => {
  const session = connectHttp2(app.baseUrl);
  t.teardown(() => session.close());
  const path = '/verify/log/live/checkpoint';
  const answer = await http2Exchange(session, { method: 'GET', path, body: undefined }, {});
  t.equal(answer.body, (await bytesOf('log/live/checkpoint')).toString());
});

t.test('the mirror rejects every method that writes', async (t) => {
  for (const path of [...DOCUMENTS, 'log/live/checkpoint', 'log/live/tile/0/000']) {
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
      const { status } = await get(path, { 'content-type': 'application/json' }, method);
      t.ok(status === 404 || status === 405, `${method} ${path}`);
    }
  }
});

t.test('nothing secret was logged or published', async (t) => {
  assertNoLeaks(t, app.recorder);
});
