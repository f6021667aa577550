import { once } from 'node:events';
import { connect as connectHttp2, constants } from 'node:http2';
import t from 'tap';
import { InfoService } from '../../../../gen/attestation/v1/service_pb.js';
import {
  enveloped,
  exchangeRaw,
  isEnvelope,
  openSocket,
  parseRaw,
  readToClose,
} from '../../../support/calling/raw-http.js';
import { callers, livesOn } from '../../../support/calling/surfaces.js';
import { KEYS, startApiServer } from '../../../support/servers/api-server.js';

const { getHealth } = InfoService.method;
const AUTHORIZATION = `Bearer ${KEYS.all}`;
const HEALTH = `GET /v1/service/health HTTP/1.1\r\nhost: a\r\nauthorization: ${AUTHORIZATION}\r\n`;
const RPC = '/attestation.v1.InfoService/GetHealth';

t.test('malformed HTTP is rejected with an error envelope', async (t) => {
  const api = await startApiServer(t);
  for (const bytes of [
    'hello\r\n\r\n',
    'GET / HTTP/9.9\r\n\r\n',
    'GET /v1/service/health HTTP/1.1\r\nhost a\r\n\r\n',
    'GET /v1/x HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n',
    'PRIVATE / HTTP/1.1\r\nhost: a\r\n\r\n',
    Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03]),
    Buffer.alloc(4_096, 0xff),
    `POST /v1/attestations HTTP/1.1\r\nhost: a\r\nauthorization: ${AUTHORIZATION}\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n`,
  ]) {
    isEnvelope(t, await exchangeRaw(api.port, bytes), 400, 'request.invalid');
  }
  await livesOn(t, api);
});

t.test('a truncated preface of HTTP/2 is cut off', async (t) => {
  const api = await startApiServer(t, { limits: { headersTimeoutMs: 500 } });
  await exchangeRaw(api.port, 'PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n');
  await exchangeRaw(api.port, `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${'\xff'.repeat(64)}`);
  t.equal(await exchangeRaw(api.port, 'PR'), '', 'and so is what says too little in time');
  t.equal(await exchangeRaw(api.port, ''), '', 'or nothing');
  const reset = await openSocket(api.port);
  reset.write('PR');
  reset.resetAndDestroy();
  await livesOn(t, api);
});

t.test('a request that arrives byte by byte is answered', async (t) => {
  const api = await startApiServer(t);
  const socket = await openSocket(api.port);
  socket.setNoDelay(true);
  const answer = readToClose(socket);
  for (const byte of `${HEALTH}connection: close\r\n\r\n`) {
    await new Promise((resolve) => socket.write(byte, resolve));
  }
  t.equal(parseRaw(await answer).status, 200);
});

t.test('a client that has finished sending gets its answer', async (t) => {
  const api = await startApiServer(t);
  const socket = await openSocket(api.port);
  const answer = readToClose(socket);
  socket.end(`${HEALTH}\r\n`);
  t.equal(parseRaw(await answer).status, 200);
  const silent = await openSocket(api.port);
  const nothing = readToClose(silent);
  silent.end();
  t.equal(await nothing, '');
  await livesOn(t, api);
});

t.test('headers may be large, but not without bound', async (t) => {
  const api = await startApiServer(t);
  const headersOf = (bytes: number) => ({ authorization: AUTHORIZATION, 'x-large': 'x'.repeat(bytes) });
  for (const caller of callers(api.baseUrl)) {
    t.teardown(caller.close);
    t.equal((await caller.call(getHealth, {}, { headers: headersOf(10_000) })).code, 'ok', caller.name);
  }
  const answer = await exchangeRaw(api.port, `${HEALTH}x-large: ${'x'.repeat(20_000)}\r\n\r\n`);
  isEnvelope(t, answer, 431, 'request.headers_too_large');
  const session = connectHttp2(api.baseUrl);
  t.teardown(() => session.destroy());
  // The bound holds from when the client has acknowledged the settings it is in.
  await once(session, 'remoteSettings');
  const stream = session.request({ ':path': '/v1/service/health', ...headersOf(20_000) });
  await t.rejects(once(stream, 'response'));
  t.equal(stream.rstCode, constants.NGHTTP2_ENHANCE_YOUR_CALM);
  await livesOn(t, api);
});

t.test('a request that is not received in time is given up', async (t) => {
  const limits = { headersTimeoutMs: 200, requestTimeoutMs: 200 };
  const api = await startApiServer(t, { limits });
  isEnvelope(t, await exchangeRaw(api.port, 'GET /v1/x HT'), 408, 'request.timeout');
  const head = `POST /v1/attestations HTTP/1.1\r\nhost: a\r\nauthorization: ${AUTHORIZATION}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{`;
  isEnvelope(t, await exchangeRaw(api.port, head), 408, 'request.timeout');
  const session = connectHttp2(api.baseUrl);
  t.teardown(() => session.destroy());
  for (const [path, type] of [
    ['/v1/attestations', 'application/json'],
    [RPC, 'application/grpc'],
    [RPC, 'application/proto'],
  ]) {
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      authorization: AUTHORIZATION,
      'content-type': type,
    });
    stream.on('error', () => {});
    stream.write('{');
    await new Promise((resolve) => stream.once('close', resolve));
    t.equal(stream.rstCode, constants.NGHTTP2_CANCEL, `${path} ${type}`);
  }
  await livesOn(t, api);
});

t.test('an idle connection is closed after its time', async (t) => {
  const api = await startApiServer(t, { limits: { keepAliveTimeoutMs: 500, sessionIdleMs: 500 } });
  t.equal(parseRaw(await exchangeRaw(api.port, `${HEALTH}\r\n`)).status, 200);
  const session = connectHttp2(api.baseUrl);
  await new Promise((resolve) => session.once('close', resolve));
  await livesOn(t, api);
});

t.test('a target that names no usable host is rejected', async (t) => {
  const api = await startApiServer(t);
  const post = (host: string) =>
    `POST ${RPC} HTTP/1.1\r\n${host}authorization: ${AUTHORIZATION}\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}`;
  const get = `GET /v1/service/health HTTP/1.1\r\nauthorization: ${AUTHORIZATION}\r\nconnection: close\r\n\r\n`;
  for (const bytes of [
    get,
    post(''),
    post('host: a:b:c\r\n'),
    post('host: [::zz]\r\n'),
    post('host: 1.2.3.256\r\n'),
  ]) {
    isEnvelope(t, await exchangeRaw(api.port, bytes), 400, 'request.invalid');
  }
  const session = connectHttp2(api.baseUrl);
  t.teardown(() => session.destroy());
  const stream = session.request({
    ':method': 'POST',
    ':path': RPC,
    ':authority': '[::zz]',
    ...JSON_HEADERS,
  });
  stream.end('{}');
  const status = await new Promise((resolve) =>
    stream.once('response', (headers) => resolve(headers[':status'])),
  );
  t.equal(status, 400);
  await livesOn(t, api);
});

const JSON_HEADERS = { authorization: AUTHORIZATION, 'content-type': 'application/json' };

t.test('HTTP/1.0 and targets in absolute form are served', async (t) => {
  const { port } = await startApiServer(t);
  const rest = [
    '/v1/service/health',
    'http://a.example/v1/service/health',
    'HTTP://a.example/v1/service/health',
  ];
  for (const target of rest) {
    const bytes = `GET ${target} HTTP/1.1\r\nhost: a\r\nauthorization: ${AUTHORIZATION}\r\nconnection: close\r\n\r\n`;
    t.equal(parseRaw(await exchangeRaw(port, bytes)).status, 200, target);
  }
  const body = `authorization: ${AUTHORIZATION}\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}`;
  for (const bytes of [
    `GET /v1/service/health HTTP/1.0\r\nauthorization: ${AUTHORIZATION}\r\n\r\n`,
    `POST ${RPC} HTTP/1.0\r\n${body}`,
    `POST http://a.example${RPC} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n${body}`,
  ]) {
    t.equal(parseRaw(await exchangeRaw(port, bytes)).status, 200, bytes.slice(0, 40));
  }
});

t.test('connections beyond the bound are closed at once', async (t) => {
  const api = await startApiServer(t, { limits: { maxConnections: 2 } });
  const held = [await openSocket(api.port), await openSocket(api.port)];
  t.equal(await readToClose(await openSocket(api.port)), '');
  for (const socket of held) {
    const answer = readToClose(socket);
    socket.end(`${HEALTH}\r\n`);
    t.equal(parseRaw(await answer).status, 200);
  }
  await livesOn(t, api);
});

t.test('100 Continue is sent once the request is admitted', async (t) => {
  const api = await startApiServer(t);
  const body = JSON.stringify({ artifact: { sha256: 'ab'.repeat(32) }, metadata: { schema: 'purl' } });
  const head = (authorization: string, length = body.length) =>
    `POST /v1/attestations HTTP/1.1\r\nhost: a\r\nauthorization: ${authorization}\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\nexpect: 100-continue\r\n\r\n`;
  const refused = await exchangeRaw(api.port, head('Bearer wrong'));
  isEnvelope(t, refused, 401, 'auth.invalid_key');
  t.match(refused, /connection: close/i, 'what follows could be the body or another request');
  isEnvelope(t, await exchangeRaw(api.port, head(AUTHORIZATION, 10_000_000)), 413, 'request.too_large');

  const socket = await openSocket(api.port);
  socket.write(head(AUTHORIZATION));
  const [first] = (await once(socket, 'data')) as [Buffer];
  t.equal(first.toString(), 'HTTP/1.1 100 Continue\r\n\r\n');
  const rest = readToClose(socket);
  socket.write(`${body}${HEALTH}connection: close\r\n\r\n`);
  const answers = await rest;
  t.match(answers, /^HTTP\/1\.1 201 /);
  t.match(answers, /HTTP\/1\.1 200 /, 'the connection goes on');

  const session = connectHttp2(api.baseUrl);
  t.teardown(() => session.destroy());
  const ask = (authorization: string) =>
    session.request({
      ':method': 'POST',
      ':path': '/v1/attestations',
      'content-type': 'application/json',
      expect: '100-continue',
      authorization,
    });
  const [status] = await once(ask('Bearer wrong'), 'response');
  t.equal(status[':status'], 401);
  const stream = ask(AUTHORIZATION);
  await once(stream, 'continue');
  stream.end(body);
  const [created] = await once(stream, 'response');
  t.equal(created[':status'], 201);
});

t.test('ambiguous requests are rejected', async (t) => {
  const api = await startApiServer(t);
  const close = 'connection: close\r\n\r\n';
  const twice = [
    `GET /v1/service/health HTTP/1.1\r\nhost: a\r\nHOST: b\r\nauthorization: ${AUTHORIZATION}\r\n${close}`,
    `${HEALTH}host: a\r\n${close}`,
    `${HEALTH}Authorization: Bearer other\r\n${close}`,
    `${HEALTH}authorization: ${AUTHORIZATION}\r\n${close}`,
  ];
  for (const bytes of twice) isEnvelope(t, await exchangeRaw(api.port, bytes), 400, 'request.invalid');
  const body = '0\r\n\r\n';
  for (const coding of ['gzip, chunked', 'deflate, gzip, chunked']) {
    for (const path of ['/v1/attestations', RPC]) {
      const bytes = `POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: ${coding}\r\n\r\n${body}`;
      const answer = await exchangeRaw(api.port, bytes);
      isEnvelope(t, answer, 501, 'request.unsupported_transfer_coding');
    }
  }
  const session = connectHttp2(api.baseUrl);
  t.teardown(() => session.destroy());
  const headers = {
    ':path': '/v1/service/health',
    ':authority': 'a',
    authorization: AUTHORIZATION,
    host: 'b',
  };
  const [{ ':status': status }] = await once(session.request(headers), 'response');
  t.equal(status, 400);
  await livesOn(t, api);
});

t.test('JSON with two members of one name is rejected on every surface', async (t) => {
  const api = await startApiServer(t);
  const json = '{"artifact":{"sha256":"a"},"metadata":{"schema":"a","b":{"c":1,"c":2}}}';
  const rpc = '/attestation.v1.AttestationService/CreateAttestation';
  for (const [path, type, body] of [
    ['/v1/attestations', 'application/json', json],
    [rpc, 'application/json', json],
    [rpc, 'application/grpc-web+json', enveloped(0, Buffer.from(json))],
  ] as const) {
    const headers = { authorization: AUTHORIZATION, 'content-type': type };
    const answer = await fetch(api.baseUrl + path, { method: 'POST', headers, body });
    const text = await answer.text();
    const told = type.includes('grpc') ? decodeURIComponent(text) : text;
    t.match(told, '/metadata/b/c occurs twice', `${path} ${type}`);
  }
});
