import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { join } from 'node:path';
import { connect as connectTls, type SecureVersion } from 'node:tls';
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import t, { type Test } from 'tap';
import { Client, request } from 'undici';
import { InfoService } from '../../../../gen/attestation/v1/service_pb.js';
import { Health } from '../../../../gen/grpc/health/v1/health_pb.js';
import type { TlsFiles } from '../../../../src/config/tls-files.js';
import { standardServices } from '../../../../src/server/process/api/standard-rpcs.js';
import { openSocket, peekTls, readToClose } from '../../../support/calling/raw-http.js';
import { runProcess } from '../../../support/calling/run-cli.js';
import { install, makeCertificate } from '../../../support/certificates/certificates.js';
import { KEYS, startApiServer, type TestServer } from '../../../support/servers/api-server.js';
import { makeInstallation } from '../../../support/servers/installation.js';
import { until } from '../../../support/until.js';

const HEADERS = { authorization: `Bearer ${KEYS.all}` };
const dir = t.testdir({});
const first = await makeCertificate(dir, 'first');
const second = await makeCertificate(dir, 'second');
const rsa = await makeCertificate(dir, 'rsa', { key: 'rsa' });
const expired = await makeCertificate(dir, 'expired', { days: -1 });

/** A server under TLS, with the files it reads. */
async function start(t: Test): Promise<TestServer & { files: TlsFiles; secureUrl: string }> {
  const own = t.testdir({});
  const files = { certFile: join(own, 'cert.pem'), keyFile: join(own, 'key.pem') };
  await install(first, files);
  const publicServices = standardServices([InfoService], async () => true);
  const api = await startApiServer(t, { tls: files, publicServices });
  return { ...api, files, secureUrl: `https://localhost:${api.port}` };
}

t.test('a certificate is renewed under load, again and again, and no connection is dropped', async (t) => {
  const { server, port, files, secureUrl, observations } = await start(t);
  const insecure = { rejectUnauthorized: false };
  const clients = Array.from({ length: 6 }, () => new Client(secureUrl, { connect: insecure }));
  const sessions = [1, 2].map(() => connectHttp2(secureUrl, insecure));
  await Promise.all(sessions.map((session) => once(session, 'remoteSettings')));
  let connections = 0;
  for (const client of clients) client.on('connect', () => connections++);
  const transport = createGrpcTransport({ baseUrl: secureUrl, nodeOptions: insecure });
  const watch = createClient(Health, transport).watch({})[Symbol.asyncIterator]();
  await watch.next();
  const watching = watch.next();
  let answered = 0;
  let done = false;
  const load = [
    ...clients.map(async (client) => {
      while (!done) {
        const { body } = await client.request({
          method: 'GET',
          path: '/v1/service/health',
          headers: HEADERS,
        });
        t.same(await body.json(), { status: 'ok' });
        answered++;
      }
    }),
    ...sessions.map(async (session) => {
      while (!done) {
        t.equal(await getHealth(session), '{"status":"ok"}');
        answered++;
      }
    }),
  ];
  for (const [index, pair] of Array.from(
    { length: 12 },
    (_, i) => [second, rsa, first][i % 3] ?? first,
  ).entries()) {
    await install(pair, files);
    server.reloadTls();
    const name = ['second', 'rsa', 'first'][index % 3];
    t.equal((await peekTls(port, ['h2'])).subject, name);
    await writeFile(files.keyFile, 'no key');
    t.throws(() => server.reloadTls());
    t.equal((await peekTls(port, ['http/1.1'])).subject, name);
    const before = answered;
    while (answered < before + 20) await new Promise(setImmediate);
  }
  done = true;
  await Promise.all(load);
  t.equal(connections, clients.length, 'every client kept its connection');
  t.notOk(sessions.some(({ closed }) => closed));
  t.ok(observations.every(({ status }) => status === 200));
  const stopping = server.close();
  t.match(await watching, { value: { status: 2 } }, 'the stream lived through all of it');
  await t.rejects(watch.next());
  for (const client of clients) await client.close();
  for (const session of sessions) session.close();
  await stopping;
});

async function getHealth(session: ClientHttp2Session): Promise<string> {
  const stream = session.request({ ':path': '/v1/service/health', ...HEADERS });
  let text = '';
  for await (const chunk of stream.setEncoding('utf8')) text += chunk;
  return text;
}

t.test('an unusable certificate is not loaded', async (t) => {
  const { server, port, files } = await start(t);
  const mixed = (certificate: TlsFiles, key: TlsFiles) => ({
    certFile: certificate.certFile,
    keyFile: key.keyFile,
  });
  const bad: [TlsFiles, RegExp][] = [
    [mixed(second, first), /does not match the certificate/],
    [mixed(rsa, first), /does not match the certificate/],
    [mixed(first, rsa), /does not match the certificate/],
    [expired, /expired on/],
    [{ certFile: first.keyFile, keyFile: first.certFile }, /cannot be read/],
  ];
  for (const [pair, message] of bad) {
    await install(pair, files);
    t.throws(() => server.reloadTls(), { message });
    t.equal((await peekTls(port, ['h2'])).subject, 'first');
  }
  await install(second, files);
  server.reloadTls();
  t.equal((await peekTls(port, ['h2'])).subject, 'second');
});

t.test('TLS 1.2 and 1.3 are spoken, and nothing older, before and after a renewal', async (t) => {
  const { server, port, files } = await start(t);
  for (const pair of [first, rsa]) {
    await install(pair, files);
    server.reloadTls();
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) t.equal(await handshake(port, version), version);
    for (const version of ['TLSv1', 'TLSv1.1'] as const) await t.rejects(handshake(port, version), version);
  }
});

/** A handshake in one version of TLS. @returns the version as it was agreed on */
function handshake(port: number, version: SecureVersion): Promise<string | null> {
  return new Promise((resolve, reject) => {
    const only = { minVersion: version, maxVersion: version, ciphers: 'DEFAULT@SECLEVEL=0' };
    const socket = connectTls({ port, rejectUnauthorized: false, ALPNProtocols: ['h2'], ...only }, () => {
      resolve(socket.getProtocol());
      socket.destroy();
    });
    socket.once('error', reject);
  });
}

t.test('plain text is cut off, and another ALPN protocol is rejected', async (t) => {
  const { port, secureUrl } = await start(t);
  const socket = await openSocket(port);
  const answer = readToClose(socket);
  socket.write('GET /v1/service/health HTTP/1.1\r\nhost: localhost\r\n\r\n');
  t.notMatch(await answer, 'HTTP/1.1');
  await t.rejects(peekTls(port, ['smtp']));
  const client = new Client(secureUrl, { connect: { rejectUnauthorized: false } });
  const { statusCode, body } = await client.request({
    method: 'GET',
    path: '/v1/service/health',
    headers: HEADERS,
  });
  t.equal(statusCode, 200);
  await body.dump();
  await client.close();
});

t.test('SIGHUP loads a renewed certificate, or logs the error and keeps the old one', async (t) => {
  const own = t.testdir({});
  const files = { certFile: join(own, 'cert.pem'), keyFile: join(own, 'key.pem') };
  await install(first, files);
  const env = { TLS_CERT_FILE: files.certFile, TLS_KEY_FILE: files.keyFile };
  const installation = await makeInstallation(t, { env });
  const api = await installation.startApi();
  const port = Number(new URL(api.baseUrl).port);
  const said = (level: string, text: RegExp) =>
    until(`the log says ${text}`, () =>
      api.lines.some((line) => line.level === level && text.test(JSON.stringify(line))),
    );
  t.equal(new URL(api.baseUrl).protocol, 'https:');
  await install(expired, files);
  api.hangUp();
  await said('error', /keeping the old ones.*|expired on/);
  t.equal((await peekTls(port, ['h2'])).subject, 'first');
  await install(second, files);
  api.hangUp();
  await said('info', /were reloaded/);
  t.equal((await peekTls(port, ['h2'])).subject, 'second');
  t.equal((await request(`${api.opsUrl}/livez`)).statusCode, 200);
  await api.stop();
});

t.test('a process does not start with an unusable certificate, and reports the reason', async (t) => {
  const cases: [TlsFiles, string][] = [
    [expired, 'expired on'],
    [{ certFile: first.certFile, keyFile: second.keyFile }, 'the key does not match the certificate'],
    [{ certFile: first.certFile, keyFile: join(dir, 'nowhere.pem') }, 'cannot be read'],
  ];
  for (const [{ certFile, keyFile }, reason] of cases) {
    const { code, stderr } = await runProcess(['api'], { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile });
    t.equal(code, 2);
    t.match(stderr, /TLS_CERT_FILE and TLS_KEY_FILE/);
    t.match(stderr, reason);
  }
});
