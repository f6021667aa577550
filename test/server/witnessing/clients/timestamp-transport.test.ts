/** The transport of RFC 3161 to servers that misbehave. */
import { randomBytes } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import type { RequestListener, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import t from 'tap';
import { utf8 } from '../../../../src/proof/bytes/encoding.js';
import { WitnessRequestError } from '../../../../src/server/witnessing/clients/bounded-request.js';
import { rfc3161Witness } from '../../../../src/server/witnessing/clients/rfc3161.js';
import { serve } from '../../../support/witnesses/openssl-tsa.js';
import { checkpoint, never, REPLY, transport } from './stamping.js';

t.test('the request has the wire format of RFC 3161', async (t) => {
  const seen: { method?: string | undefined; type?: string | undefined; body?: Buffer } = {};
  const server = await serve(async (request, response) => {
    Object.assign(seen, {
      method: request.method,
      type: request.headers['content-type'],
      body: await buffer(request),
    });
    response.writeHead(200, { 'content-type': 'Application/Timestamp-Reply; charset=binary' }).end('reply');
  });
  t.teardown(server.close);
  const reply = await transport(t, server.url)(utf8('request'), never);
  t.equal(Buffer.from(reply).toString(), 'reply');
  t.match(seen, { method: 'POST', type: 'application/timestamp-query', body: Buffer.from('request') });
});

t.test('a server that misbehaves is given up with a short reason', async (t) => {
  const cases: [
    string,
    { code: string; message: RegExp },
    RequestListener,
    { timeoutMs?: number; maxBytes?: number }?,
  ][] = [
    [
      '500',
      { code: 'http_status', message: /^the authority answered with status 500$/ },
      (_, r) => r.writeHead(500, REPLY).end('x'),
    ],
    ['201', { code: 'http_status', message: /status 201/ }, (_, r) => r.writeHead(201, REPLY).end('x')],
    [
      'an HTML page',
      { code: 'content_type', message: /^the authority answered with text\/html, not a/ },
      (_, r) => r.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end('<html>'),
    ],
    [
      'no content type',
      { code: 'content_type', message: /no content type/ },
      (_, r) => r.writeHead(200).end('x'),
    ],
    [
      'an endless content type',
      { code: 'content_type', message: /^.{0,120}$/ },
      (_, r) => r.writeHead(200, { 'content-type': 'x'.repeat(4000) }).end('x'),
    ],
    [
      'an endless answer',
      { code: 'too_large', message: /^the answer has more than 65536 bytes$/ },
      (_, r) => pour(r.writeHead(200, REPLY)),
    ],
    ['an endless error', { code: 'too_large', message: /more than/ }, (_, r) => pour(r.writeHead(500))],
    [
      'one byte too many',
      { code: 'too_large', message: /more than 10 bytes/ },
      (_, r) => r.writeHead(200, REPLY).end('12345678901'),
      { maxBytes: 10 },
    ],
    [
      'no answer',
      { code: 'timeout', message: /^no whole answer within 50 ms$/ },
      () => undefined,
      { timeoutMs: 50 },
    ],
    [
      'half an answer',
      { code: 'timeout', message: /within 50 ms/ },
      (_, r) => r.writeHead(200, REPLY).write('half'),
      { timeoutMs: 50 },
    ],
    [
      'a cut connection',
      { code: 'network', message: /^127\.0\.0\.1:\d+ cannot be asked: UND_ERR_SOCKET$/ },
      (request) => request.socket.destroy(),
    ],
    [
      'a cut answer',
      { code: 'network', message: /UND_ERR_SOCKET|ECONNRESET/ },
      (_, r) => r.writeHead(200, { ...REPLY, 'content-length': 99 }).write('half', () => r.destroy()),
    ],
    ['garbage', { code: 'malformed', message: /./ }, (_, r) => r.writeHead(200, REPLY).end(randomBytes(500))],
    ['nothing', { code: 'malformed', message: /truncated/ }, (_, r) => r.writeHead(200, REPLY).end()],
  ];
  for (const [name, error, listener, limits] of cases) {
    const server = await serve(listener);
    t.teardown(server.close);
    const witness = rfc3161Witness(
      { send: transport(t, server.url, limits), randomBytes },
      { name: 'bad', chains: [] },
    );
    await t.rejects(witness.ask(checkpoint, never), error, name);
  }
});

t.test('a redirect is not followed', async (t) => {
  const asked: string[] = [];
  const target = await serve((request, response) => {
    asked.push(request.url ?? '');
    response.writeHead(200, REPLY).end();
  });
  t.teardown(target.close);
  for (const status of [301, 302, 303, 307, 308]) {
    const server = await serve((_, response) =>
      response.writeHead(status, { ...REPLY, location: target.url }).end(),
    );
    t.teardown(server.close);
    const send = transport(t, server.url);
    await t.rejects(send(utf8('request'), never), {
      code: 'http_status',
      message: new RegExp(`status ${status}`),
    });
  }
  t.same(asked, []);
});

t.test('a request that is aborted ends at once and closes its connection', async (t) => {
  const arrived = new EventEmitter();
  const server = await serve((request) => {
    arrived.emit('request', request.socket);
  });
  t.teardown(server.close);
  const controller = new AbortController();
  const request = once(arrived, 'request');
  const answer = transport(t, server.url)(utf8('request'), controller.signal);
  const [socket] = await request;
  const closed = once(socket, 'close');
  controller.abort();
  await t.rejects(answer, { code: 'aborted', message: 'the request was aborted' });
  await closed;
  const early = transport(t, server.url)(utf8('request'), AbortSignal.abort());
  await t.rejects(early, WitnessRequestError, 'aborted before it began');
});

t.test('an authority that cannot be reached is named without its credentials', async (t) => {
  const server = await serve(() => undefined);
  await server.close();
  const url = server.url.replace('http://', 'http://user:secret@');
  await t.rejects(transport(t, url)(utf8('request'), never), {
    code: 'network',
    message: /^127\.0\.0\.1:\d+ cannot be asked: ECONNREFUSED$/,
  });
  await t.rejects(transport(t, 'ftp://host/secret')(utf8('request'), never), {
    code: 'network',
    message: /^host cannot/,
  });
  await t.rejects(transport(t, 'no address')(utf8('request'), never), {
    code: 'network',
    message: /^the address cannot/,
  });
});

/** Writes until the other side hangs up. */
function pour(response: ServerResponse): void {
  const chunk = Buffer.alloc(16_384);
  const more = () => {
    while (!response.destroyed && response.write(chunk));
  };
  response.on('drain', more).on('error', () => undefined);
  more();
}
