/** What strangers and slow clients can make the server hold. */
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import t from 'tap';
import type { Observation } from '../../../../src/server/http/socket/requests.js';
import {
  exchangeRaw,
  isEnvelope,
  openSocket,
  parseRaw,
  readToClose,
} from '../../../support/calling/raw-http.js';
import { livesOn } from '../../../support/calling/surfaces.js';
import { KEYS, startApiServer } from '../../../support/servers/api-server.js';
import { until } from '../../../support/until.js';

const AUTHORIZATION = `Bearer ${KEYS.all}`;
const HEAD = `host: a\r\nauthorization: ${AUTHORIZATION}\r\n`;

/** What holds `GetBatch` of `btc_gate`. */
function newGate(): { gate: Promise<void>; open: () => void } {
  let open = () => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { gate, open };
}

t.test('few requests of a connection are begun before earlier ones are answered', async (t) => {
  const { gate, open } = newGate();
  const api = await startApiServer(t, { gate, limits: { maxPipelined: 3 } });
  const socket = await openSocket(api.port);
  const answers = readToClose(socket);
  const request = `GET /v1/batches/btc_gate HTTP/1.1\r\n${HEAD}\r\n`;
  socket.write(request.repeat(500));
  await until('three have begun', () => api.calls.length === 3);
  await livesOn(t, api);
  t.equal(api.calls.filter(({ method }) => method.name === 'GetBatch').length, 3);
  open();
  socket.write(`GET /v1/batches/btc_missing HTTP/1.1\r\n${HEAD}connection: close\r\n\r\n`);
  const text = await answers;
  t.equal(text.match(/HTTP\/1\.1 200 /g)?.length, 500, 'all are answered in the end');
  t.match(text.slice(text.lastIndexOf('HTTP/1.1')), /^HTTP\/1\.1 404 /, 'in their order');
});

t.test('pipelined requests with bodies, cut anywhere, are each answered once', async (t) => {
  const api = await startApiServer(t, { limits: { maxPipelined: 2 } });
  const json = `{"artifact":{"sha256":"${'ab'.repeat(32)}"},"metadata":{"schema":"x\\r\\n\\r\\n"}}`;
  const type = 'content-type: application/json\r\n';
  const sized = `POST /v1/attestations HTTP/1.1\r\n${HEAD}${type}content-length: ${json.length}\r\n\r\n${json}`;
  const chunked = `POST /v1/attestations HTTP/1.1\r\n${HEAD}${type}transfer-encoding: chunked\r\n\r\n${json.length.toString(16)}\r\n${json}\r\n0\r\n\r\n`;
  const text = `${`${sized}${chunked}\r\n`.repeat(40)}GET /v1/x HTTP/1.1\r\n${HEAD}connection: close\r\n\r\n`;
  for (const size of [1_000_000, 1_000, 97, 7]) {
    const socket = await openSocket(api.port);
    socket.setNoDelay(true);
    const answers = readToClose(socket);
    for (let at = 0; at < text.length; at += size) {
      await new Promise((resolve) => socket.write(text.slice(at, at + size), resolve));
    }
    t.equal((await answers).match(/HTTP\/1\.1 201 /g)?.length, 80, `in pieces of ${size} bytes`);
  }
});

t.test(
  'an address has so many connections and open requests, and a trusted proxy as many as all',
  async (t) => {
    const { gate, open } = newGate();
    const limits = { maxConnectionsPerPeer: 2, maxRequestsPerPeer: 3 };
    const api = await startApiServer(t, { gate, limits: { ...limits, trustedProxies: [] } });
    const session = connectHttp2(api.baseUrl);
    t.teardown(() => session.destroy());
    await once(session, 'remoteSettings');
    const second = await openSocket(api.port);
    t.equal(await readToClose(await openSocket(api.port)), '', 'the third is closed');
    second.destroy();
    const ask = () => session.request({ ':path': '/v1/batches/btc_gate', authorization: AUTHORIZATION });
    const waiting = [ask(), ask(), ask()];
    await until('three are under way', () => api.calls.length === 3);
    const [refused] = await once(ask(), 'response');
    t.match(refused, { ':status': 503, 'retry-after': '1' });
    const answered = Promise.all(waiting.map((stream) => once(stream, 'response')));
    open();
    await answered;
    const [again] = await once(ask(), 'response');
    t.equal(again[':status'], 200, 'what was answered counts no more');

    const trusting = await startApiServer(t, { limits: { ...limits, trustedProxies: ['127.0.0.0/8'] } });
    const sockets = await Promise.all(Array.from({ length: 5 }, () => openSocket(trusting.port)));
    for (const socket of sockets) socket.destroy();
    await livesOn(t, trusting);
  },
);

t.test('all requests together are bounded', async (t) => {
  const { gate, open } = newGate();
  const api = await startApiServer(t, { gate, limits: { maxRequests: 1 } });
  const request = `GET /v1/batches/btc_gate HTTP/1.1\r\n${HEAD}connection: close\r\n\r\n`;
  const first = exchangeRaw(api.port, request);
  await until('one is under way', () => api.calls.length === 1);
  isEnvelope(t, await exchangeRaw(api.port, request), 503, 'service.unavailable');
  open();
  t.equal(parseRaw(await first).status, 200);
  await livesOn(t, api);
});

t.test('bodies that are held at a time are bounded, and a key gets a part of that only', async (t) => {
  const api = await startApiServer(t, { limits: { maxHeldBytes: 40_000 } });
  const session = connectHttp2(api.baseUrl);
  t.teardown(() => session.destroy());
  const begin = (bytes: number, path: string, type: string) => {
    const headers = { ':method': 'POST', ':path': path, 'content-type': type, authorization: AUTHORIZATION };
    const stream = session.request(headers);
    stream.on('error', () => {});
    stream.write(Buffer.alloc(bytes, ' '));
    return stream;
  };
  const rpc = '/attestation.v1.AttestationService/CreateAttestation';
  const [answer] = await once(begin(10_001, '/v1/attestations', 'application/json'), 'response');
  t.equal(answer[':status'], 503);
  const [connect] = await once(begin(10_001, rpc, 'application/json'), 'response');
  t.equal(connect[':status'], 503);
  begin(9_000, rpc, 'application/proto').close();
  await livesOn(t, api);
});

t.test('a client that does not take its answer is cut off', async (t) => {
  const api = await startApiServer(t, { limits: { sendIdleMs: 100 } });
  const request = `GET /v1/batches/btc_large HTTP/1.1\r\n${HEAD}\r\n`;
  const socket = await openSocket(api.port);
  socket.pause();
  socket.write(request.repeat(20));
  const isCutOff = (wanted: string) => (one: Observation) => one.path === wanted && one.status === 499;
  await api.observed(isCutOff('/v1/batches/btc_large'));
  await once(socket.resume(), 'close');
  const session = connectHttp2(api.baseUrl, { settings: { initialWindowSize: 100 } });
  t.teardown(() => session.destroy());
  for (const path of ['/v1/batches/btc_large', '/attestation.v1.BatchService/GetBatch']) {
    const cutOff = api.observations.filter(isCutOff(path)).length;
    const headers = { ':path': path, authorization: AUTHORIZATION, 'content-type': 'application/json' };
    const stream = session.request({ ':method': path.startsWith('/v1') ? 'GET' : 'POST', ...headers });
    stream.on('error', () => {});
    stream.end(path.startsWith('/v1') ? undefined : '{"id":"btc_large"}');
    await once(stream, 'response');
    await until('it is cut off', () => api.observations.filter(isCutOff(path)).length > cutOff);
  }
  await livesOn(t, api);
});

t.test('unread responses of one client do not block others', async (t) => {
  const api = await startApiServer(t, { limits: { maxRequests: 4, sendIdleMs: 600_000 } });
  const session = connectHttp2(api.baseUrl, { settings: { initialWindowSize: 0 } });
  t.teardown(() => session.destroy());
  const answered = Array.from({ length: 4 }, () => {
    const stream = session.request({ ':path': '/v1/batches' });
    stream.on('error', () => {});
    return once(stream, 'response');
  });
  for (const [headers] of await Promise.all(answered)) t.equal(headers[':status'], 401, 'without a key');
  const request = `GET /v1/batches/btc_missing HTTP/1.1\r\n${HEAD}connection: close\r\n\r\n`;
  isEnvelope(t, await exchangeRaw(api.port, request), 503, 'service.unavailable');
  await until('others come in', async () => parseRaw(await exchangeRaw(api.port, request)).status === 404);
  t.notOk(session.destroyed, 'the connection stays');
});

t.test('a slow but steady reader receives the whole response', async (t) => {
  const api = await startApiServer(t, { limits: { sendIdleMs: 500 } });
  const socket = await openSocket(api.port);
  let text = '';
  socket.setEncoding('latin1').on('data', (piece: string) => {
    text += piece;
    socket.pause();
    setImmediate(() => socket.resume());
  });
  socket.write(`GET /v1/batches/btc_large HTTP/1.1\r\n${HEAD}connection: close\r\n\r\n`);
  await once(socket, 'close');
  t.match(parseRaw(text).body, /"id":"btc_large"/);
  t.ok(text.length > 2_000_000);
});
