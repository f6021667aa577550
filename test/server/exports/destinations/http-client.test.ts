import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import { createServer, type Server } from 'node:net';
import { Readable } from 'node:stream';
import t, { type Test } from 'tap';
import {
  createHttpClient,
  type HttpLimits,
} from '../../../../src/server/exports/destinations/http-client.js';
import { until } from '../../../support/until.js';

const { signal } = new AbortController();

function openClient(t: Test, limits: HttpLimits = { idleMs: 30_000, answerMs: 30_000 }) {
  const agents = {
    httpAgent: new http.Agent({ keepAlive: true }),
    httpsAgent: new https.Agent({ keepAlive: true }),
  };
  const client = createHttpClient(agents, limits);
  t.teardown(() => client.close());
  return client;
}

async function listen(t: Test, server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return `127.0.0.1:${(server.address() as { port: number }).port}`;
}

t.test('an answer that comes before the whole request is sent is read', async (t) => {
  const server = http.createServer((request, response) => {
    request.pause();
    response.writeHead(412, { 'x-ms-error-code': 'ConditionNotMet' }).end('too late');
  });
  const host = await listen(t, server);
  t.teardown(() => server.closeAllConnections());
  const body = Readable.from(
    (async function* () {
      for (;;) yield Buffer.alloc(65_536);
    })(),
    { objectMode: false },
  );
  const answer = await openClient(t).send({
    method: 'PUT',
    url: `http://${host}/`,
    headers: {},
    body,
    signal,
  });
  t.match(answer, { status: 412, headers: { 'x-ms-error-code': 'ConditionNotMet' }, body: 'too late' });
  await until('the body is destroyed', () => body.destroyed);
});

t.test('a connection serves one request after the other', async (t) => {
  let connections = 0;
  const server = http.createServer(
    (request, response) => void request.resume().on('end', () => response.end('ok')),
  );
  server.on('connection', () => connections++);
  const host = await listen(t, server);
  const client = openClient(t);
  for (const body of [undefined, 'text', Buffer.from('bytes'), Readable.from(['a', 'b'])]) {
    const answer = await client.send({ method: 'POST', url: `http://${host}/`, headers: {}, body, signal });
    t.equal(answer.body, 'ok');
  }
  t.equal(connections, 1);
});

t.test('a TLS handshake that stalls', async (t) => {
  const server = createServer((socket) => socket.on('error', () => {}).resume());
  const host = await listen(t, server);
  const client = openClient(t, { idleMs: 200, answerMs: 30_000 });
  const sending = client.send({ method: 'GET', url: `https://${host}/`, headers: {}, signal });
  await t.rejects(sending, { name: 'DestinationError', message: '127.0.0.1 made no progress for 0.2 s' });
});

t.test('a host that does not speak TLS, and one whose certificate is not trusted', async (t) => {
  const server = http.createServer();
  const host = await listen(t, server);
  const sending = openClient(t).send({ method: 'GET', url: `https://${host}/`, headers: {}, signal });
  await t.rejects(sending, {
    name: 'DestinationError',
    message: /^127.0.0.1 has a certificate .* TLS failed \(E\w+\)$/,
  });
});

t.test('close ends the requests under way, and takes no more', async (t) => {
  const server = createServer((socket) => socket.on('error', () => {}).resume());
  const host = await listen(t, server);
  const client = openClient(t);
  const connected = once(server, 'connection');
  const request = { method: 'GET', url: `http://${host}/`, headers: {}, signal };
  const refused = t.rejects(client.send(request), { message: 'the destination is closed' });
  const [socket] = await connected;
  const closed = once(socket, 'close');
  await client.close();
  await refused;
  await closed;
  await t.rejects(client.send(request), { message: 'the destination is closed' });
});

t.test('a signal that is aborted already connects to nothing', async (t) => {
  const aborted = AbortSignal.abort(new Error('too late'));
  const sending = openClient(t).send({
    method: 'GET',
    url: 'http://127.0.0.1:1/',
    headers: {},
    signal: aborted,
  });
  await t.rejects(sending, { message: 'too late' });
});

t.test('a name that cannot be looked up', async (t) => {
  const url = 'http://no-such-host.invalid/';
  const sending = openClient(t).send({ method: 'GET', url, headers: {}, signal });
  await t.rejects(sending, { name: 'DestinationError', message: /^no-such-host.invalid / });
});
