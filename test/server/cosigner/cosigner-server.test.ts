import { connect } from 'node:http2';
import t, { type Test } from 'tap';
import { originHash } from '../../../src/proof/log/add-checkpoint.js';
import { createLogger } from '../../../src/server/core/logger.js';
import {
  type CosignerServerDeps,
  createCosignerServer,
} from '../../../src/server/cosigner/cosigner-server.js';
import { exchangeRaw } from '../../support/calling/raw-http.js';
import { until } from '../../support/until.js';
import { growLog } from '../../support/witnesses/grown-log.js';

const log = growLog('example.com/log42');
const OK = { status: 200, contentType: 'text/plain; charset=utf-8', body: 'cosigned\n' };

async function open(t: Test, changed: Partial<CosignerServerDeps> = {}) {
  const asked: string[] = [];
  const statuses: number[] = [];
  const server = createCosignerServer({
    addCheckpoint: async (request) => {
      asked.push(request);
      return OK;
    },
    findNote: async (hash) => (hash === originHash(log.origin) ? log.note(5) : undefined),
    log: createLogger({ level: 'silent' }),
    nowMs: Date.now,
    observe: ({ status }) => void statuses.push(status),
    ...changed,
    limits: { trustedProxies: [], idleGraceMs: 10, ...changed.limits },
  });
  const { port } = await server.listen({ host: '127.0.0.1', port: 0 });
  t.teardown(server.close);
  return { server, port, url: `http://127.0.0.1:${port}`, asked, statuses };
}

t.test('both interfaces, over HTTP/1.1 and HTTP/2', async (t) => {
  const { url, asked } = await open(t);
  const added = await fetch(`${url}/add-checkpoint`, { method: 'POST', body: log.request(0, 5) });
  t.match(added, { status: 200 });
  t.equal(await added.text(), 'cosigned\n');
  t.strictSame(asked, [log.request(0, 5)]);
  const monitored = await fetch(`${url}/${originHash(log.origin)}/checkpoint`);
  t.equal(await monitored.text(), log.note(5));
  t.equal(monitored.headers.get('content-type'), 'text/plain; charset=utf-8');
  const head = await fetch(`${url}/${originHash(log.origin)}/checkpoint`, { method: 'HEAD' });
  t.equal(head.status, 200);

  const session = connect(url);
  const stream = session.request({ ':path': '/add-checkpoint', ':method': 'POST' });
  stream.end(log.request(5, 9));
  let body = '';
  for await (const chunk of stream.setEncoding('utf8')) body += chunk;
  t.equal(body, 'cosigned\n');
  session.close();
});

t.test('requests outside the interface are rejected before they are read', async (t) => {
  const { url, port, asked } = await open(t);
  const status = async (path: string, init?: RequestInit) => (await fetch(url + path, init)).status;
  t.equal(await status('/'), 404);
  t.equal(await status('/add-checkpoint/x', { method: 'POST' }), 404);
  t.equal(await status('/add-checkpoint'), 405);
  t.equal(await status(`/${originHash('unknown')}/checkpoint`), 404);
  t.equal(await status(`/${originHash(log.origin).toUpperCase()}/checkpoint`), 404);
  t.equal(await status(`/${originHash(log.origin)}/checkpoint`, { method: 'DELETE' }), 405);
  t.equal(await status('/add-checkpoint', { method: 'POST', body: 'x'.repeat(100_000) }), 413);
  t.equal(await status('/add-checkpoint', { method: 'POST', body: Buffer.from([0xff]) }), 400);
  t.equal(
    await status('/add-checkpoint', { method: 'POST', body: 'x', headers: { 'content-encoding': 'gzip' } }),
    415,
  );
  t.match(await exchangeRaw(port, 'nonsense\r\n\r\n'), /^HTTP\/1\.1 400 /);
  const announced =
    'POST /add-checkpoint HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999\r\nconnection: close\r\n\r\n';
  t.match(await exchangeRaw(port, announced), /^HTTP\/1\.1 413 /);
  const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
  const chunked =
    'POST /add-checkpoint HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n';
  t.match(await exchangeRaw(port, `${chunked}${chunk}${chunk}${chunk}0\r\n\r\n`), /^HTTP\/1\.1 413 /);
  t.strictSame(asked, []);
});

t.test('a fault of the history is not in the response', async (t) => {
  const { url } = await open(t, { addCheckpoint: () => Promise.reject(new Error('/secret/path')) });
  const answer = await fetch(`${url}/add-checkpoint`, { method: 'POST', body: 'x' });
  t.equal(answer.status, 503);
  t.notMatch(await answer.text(), /secret/);
});

t.test('open requests and bytes are bounded, and slow ones time out', async (t) => {
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { url, statuses } = await open(t, {
    addCheckpoint: () => held.then(() => OK),
    limits: { maxRequestsPerPeer: 2, maxHeldBytes: 10_000 },
  });
  const post = (body: string) => fetch(`${url}/add-checkpoint`, { method: 'POST', body });
  const first = post('x'.repeat(9_000));
  await until('it is refused', async () => (await post('x'.repeat(2_000))).status === 503);
  const second = post('x');
  await until('both places are taken', async () => (await fetch(url)).status === 503);
  release();
  t.match(await Promise.all([first, second]), [{ status: 200 }, { status: 200 }]);
  t.ok(statuses.includes(503));
  await until('there is room again', async () => (await post('x'.repeat(9_000))).status === 200);

  const slow = await open(t, {
    addCheckpoint: () => new Promise(() => {}),
    limits: { responseTimeoutMs: 30, graceMs: 100 },
  });
  t.equal((await fetch(`${slow.url}/add-checkpoint`, { method: 'POST', body: 'x' })).status, 503);
});

t.test('closing completes open requests', async (t) => {
  let release = () => {};
  let isAsked = false;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { url, server } = await open(t, {
    addCheckpoint: () => {
      isAsked = true;
      return held.then(() => OK);
    },
  });
  const answer = fetch(`${url}/add-checkpoint`, { method: 'POST', body: 'x' });
  await until('it has begun', () => isAsked);
  const closed = server.close();
  release();
  t.equal((await answer).status, 200);
  await closed;
  await t.rejects(fetch(url));
});
