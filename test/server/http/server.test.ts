import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { connect as connectHttp2 } from 'node:http2';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import t from 'tap';
import { Client, request } from 'undici';
import { BatchService } from '../../../gen/attestation/v1/batches_pb.js';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { InfoService } from '../../../gen/attestation/v1/service_pb.js';
import { ApiError } from '../../../src/server/core/errors.js';
import { runBuf } from '../../support/calling/buf.js';
import { enveloped, exchangeRaw, openSocket, peekTls, readToClose } from '../../support/calling/raw-http.js';
import { callers, livesOn } from '../../support/calling/surfaces.js';
import { OPENSSL } from '../../support/foreign/openssl.js';
import { KEYS, startApiServer, type TestServer } from '../../support/servers/api-server.js';
import { until } from '../../support/until.js';

const { getHealth } = InfoService.method;
const { getBatch } = BatchService.method;
const AUTHORIZATION = `Bearer ${KEYS.all}`;
const RPC = '/attestation.v1.InfoService/GetHealth';

t.test('an answer of two million bytes arrives whole', async (t) => {
  const api = await startApiServer(t);
  for (const caller of callers(api.baseUrl)) {
    t.teardown(caller.close);
    const outcome = await caller.call(
      getBatch,
      { id: 'btc_large' },
      { headers: { authorization: AUTHORIZATION } },
    );
    t.equal(String(outcome.response.checkpoint).length, 2_000_000, caller.name);
  }
});

t.test('a client that does not read its answer is cut off', async (t) => {
  const api = await startApiServer(t, { limits: { sendTimeoutMs: 100, maxPipelined: 8 } });
  const socket = await openSocket(api.port);
  socket.pause();
  const line = `GET /v1/batches/btc_large HTTP/1.1\r\nhost: a\r\nauthorization: ${AUTHORIZATION}\r\n\r\n`;
  socket.write(line.repeat(8));
  const session = connectHttp2(api.baseUrl);
  t.teardown(() => session.destroy());
  const headers = { authorization: AUTHORIZATION, 'content-type': 'application/json' };
  const connect = { ':method': 'POST', ':path': '/attestation.v1.BatchService/GetBatch' };
  for (const stream of [
    session.request({ ':path': '/v1/batches/btc_large', ...headers }),
    session.request({ ...connect, ...headers }).end('{"id":"btc_large"}'),
  ]) {
    stream.on('error', () => {});
  }
  await until('every answer is over', () => api.observations.length >= 10);
  const answers = readToClose(socket);
  socket.resume();
  t.ok((await answers).length < 8 * 2_000_000, 'what was not read is not sent any more');
});

t.test('an RPC that does not exist is rejected as its protocol wants it', async (t) => {
  const api = await startApiServer(t);
  const method = { ...getHealth, name: 'GetNothing', parent: getHealth.parent } as typeof getHealth;
  for (const caller of callers(api.baseUrl).filter(({ isRest }) => !isRest)) {
    t.teardown(caller.close);
    const outcome = await caller.call(method, {}, { headers: { authorization: AUTHORIZATION } });
    t.equal(outcome.grpcCode, 12, caller.name);
  }
  await livesOn(t, api);
});

t.test('public routes are served beside the RPCs, and any other path is 404', async (t) => {
  const api = await startApiServer(t, {
    publicRoutes: (app) => {
      app.get('/openapi.json', async () => ({ openapi: '3.1.0' }));
      app.get('/fails', async () => Promise.reject(new Error('secret cause')));
      app.get('/refuses', async () => {
        throw new ApiError(ErrorCode.SERVICE_UNAVAILABLE, 'not now', {}, { 'retry-after': '3' });
      });
    },
  });
  const get = async (path: string, method: 'GET' | 'POST' | 'OPTIONS' = 'GET') => {
    const answer = await request(api.baseUrl + path, { method, body: method === 'POST' ? 'unread' : null });
    return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
  };
  t.match(await get('/openapi.json'), {
    status: 200,
    text: '{"openapi":"3.1.0"}',
    headers: { 'x-request-id': /^req_/ },
  });
  t.match(await get('/refuses'), {
    status: 503,
    headers: { 'retry-after': '3' },
    text: /service.unavailable/,
  });
  const failed = await get('/fails');
  t.match(failed, { status: 500, text: /service\.internal/ });
  t.notMatch(failed.text, 'secret cause');
  for (const path of [
    '/',
    '/nope',
    '/%zz',
    '/v1',
    '/v1/nope',
    '/openapi.json/x',
    '/attestation.v1.InfoService',
  ]) {
    t.match(
      await get(path),
      { status: /404|400/, text: /"code":"(route\.not_found|request\.invalid)"/ },
      path,
    );
  }
  t.match(await get('/openapi.json', 'POST'), { status: 404 });
  await livesOn(t, api);
});

t.test('pages of the origins that are let in may call', async (t) => {
  const { baseUrl } = await startApiServer(t, { corsOrigins: ['https://app.example'] });
  const ask = async (origin: string, method: 'GET' | 'OPTIONS') => {
    const { statusCode, headers, body } = await request(`${baseUrl}/v1/service/health`, {
      method,
      headers: { origin, authorization: AUTHORIZATION, 'access-control-request-method': 'GET' },
    });
    await body.dump();
    return { status: statusCode, headers };
  };
  t.match(await ask('https://app.example', 'OPTIONS'), {
    status: 204,
    headers: {
      'access-control-allow-origin': 'https://app.example',
      'access-control-allow-methods': /PATCH/,
    },
  });
  t.match(await ask('https://app.example', 'GET'), {
    status: 200,
    headers: {
      'access-control-allow-origin': 'https://app.example',
      'access-control-expose-headers': /x-request-id/,
    },
  });
  t.notOk((await ask('https://other.example', 'GET')).headers['access-control-allow-origin']);
});

t.test('under TLS both versions are served, and a renewed certificate is taken up', async (t) => {
  const dir = t.testdir({});
  const tls = { certFile: join(dir, 'cert.pem'), keyFile: join(dir, 'key.pem') };
  const makeCertificate = (name: string) =>
    promisify(execFile)(OPENSSL, [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '1'],
      ...['-subj', `/CN=${name}`, '-keyout', tls.keyFile, '-out', tls.certFile],
    ]);
  await makeCertificate('first');
  const api = await startApiServer(t, { tls });
  const baseUrl = api.baseUrl.replace('http:', 'https:');
  for (const allowH2 of [false, true]) {
    const client = new Client(baseUrl, { allowH2, connect: { rejectUnauthorized: false } });
    const { body } = await client.request({
      method: 'GET',
      path: '/v1/service/health',
      headers: { authorization: AUTHORIZATION },
    });
    t.same(await body.json(), { status: 'ok' });
    await client.close();
  }
  const transport = createGrpcTransport({ baseUrl, nodeOptions: { rejectUnauthorized: false } });
  const health = await createClient(InfoService, transport).getHealth({}, { headers: JSON_HEADERS });
  t.equal(health.status, 'ok');
  t.same(await peekTls(api.port, ['h2', 'http/1.1']), { subject: 'first', protocol: 'h2' });
  t.same(await peekTls(api.port, ['http/1.1']), { subject: 'first', protocol: 'http/1.1' });
  await makeCertificate('second');
  api.server.reloadTls();
  t.equal((await peekTls(api.port, ['h2'])).subject, 'second');
  await writeFile(tls.certFile, 'no certificate');
  t.throws(() => api.server.reloadTls());
  t.equal((await peekTls(api.port, ['h2'])).subject, 'second');
  await exchangeRaw(api.port, 'GET / HTTP/1.1\r\n\r\n');
  t.equal((await peekTls(api.port, ['h2'])).subject, 'second', 'and the server lives on');
});

const JSON_HEADERS = { authorization: AUTHORIZATION, 'content-type': 'application/json' };

t.test('a disconnect aborts the call', async (t) => {
  const api = await startApiServer(t);
  const gone = (surface: string) => api.observed((one) => one.protocol === surface && one.status === 499);
  const client = new Client(api.baseUrl);
  const abort = new AbortController();
  const pending = client.request({
    method: 'GET',
    path: '/v1/batches/btc_never',
    headers: { authorization: AUTHORIZATION },
    signal: abort.signal,
  });
  await called(api, 1);
  abort.abort();
  await t.rejects(pending);
  await gone('rest');
  const session = connectHttp2(api.baseUrl);
  const stream = session.request({
    ':method': 'POST',
    ':path': '/attestation.v1.BatchService/GetBatch',
    'content-type': 'application/grpc',
    authorization: AUTHORIZATION,
  });
  stream.on('error', () => {});
  stream.end(enveloped(0, Buffer.from([0x0a, 9, ...Buffer.from('btc_never')])));
  await called(api, 2);
  session.destroy();
  await gone('grpc');
  t.ok(api.calls.every(({ signal }) => signal().aborted));
  t.notOk(
    api.lines.some(({ level }) => level === 'error'),
    'which is no failure of ours',
  );
  await client.close();
});

/** Resolves when so many calls have reached a handler. */
async function called({ calls }: TestServer, n: number): Promise<void> {
  while (calls.length < n) await new Promise(setImmediate);
}

t.test('buf curl calls it by the protos', async (t) => {
  const { port } = await startApiServer(t);
  for (const protocol of ['connect', 'grpc', 'grpcweb']) {
    const stdout = await runBuf([
      'curl',
      '--schema=.',
      `--protocol=${protocol}`,
      '--http2-prior-knowledge',
      `--header=authorization: ${AUTHORIZATION}`,
      `http://127.0.0.1:${port}${RPC}`,
    ]);
    t.same(JSON.parse(stdout), { status: 'ok' }, protocol);
  }
});
