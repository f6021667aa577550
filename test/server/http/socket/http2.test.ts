/** HTTP/2: bodies in both directions, routes of Fastify, frames that bring nothing forward. */
import { once } from 'node:events';
import { type ClientHttp2Stream, connect as connectHttp2, constants } from 'node:http2';
import { Readable } from 'node:stream';
import { setTimeout } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { BatchService } from '../../../../gen/attestation/v1/batches_pb.js';
import {
  EMPTY_SETTINGS,
  frame,
  openRawHttp2,
  POST_BLOCK,
  uint32,
} from '../../../support/calling/h2-frames.js';
import { livesOn } from '../../../support/calling/surfaces.js';
import { KEYS, startApiServer, type TestServer } from '../../../support/servers/api-server.js';

const RPC_PATH = `/${BatchService.typeName}/${BatchService.method.getBatch.name}`;
const AUTHORIZATION = `Bearer ${KEYS.all}`;
const LARGE = Buffer.from(Array.from({ length: 65_536 }, (_, i) => i * 7));
const [DATA, HEADERS, PRIORITY, RST, SETTINGS, PING, WINDOW] = [0, 1, 2, 3, 4, 6, 8];
const [END_HEADERS, BOTH] = [4, 5];

function start(t: Test): Promise<TestServer> {
  return startApiServer(t, {
    limits: { sendIdleMs: 2_000 },
    publicRoutes: (app) => {
      app.get('/piped', async (_request, reply) => {
        const pieces = Array.from({ length: 46 }, () => LARGE);
        return reply.header('X-Own', 'a').type('text/plain').send(Readable.from(pieces));
      });
      app.get('/text', async (_request, reply) =>
        reply.code(201).header('set-cookie', ['a=b', 'c=d']).send('é'),
      );
      app.get('/empty', async (_request, reply) => reply.code(204).send());
      app.get('/broken', async (_request, reply) =>
        reply.send(
          Readable.from(
            (async function* () {
              yield LARGE;
              throw new Error('broken');
            })(),
          ),
        ),
      );
    },
  });
}

async function read(stream: ClientHttp2Stream): Promise<{ headers: Record<string, unknown>; body: Buffer }> {
  const [headers] = await once(stream, 'response');
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return { headers, body: Buffer.concat(chunks) };
}

t.test('routes of Fastify send streams, texts and empty bodies', async (t) => {
  const api = await start(t);
  for (const initialWindowSize of [65_535, 1_000, 2 ** 24]) {
    const session = connectHttp2(api.baseUrl, { settings: { initialWindowSize } });
    const get = (path: string, method = 'GET') => read(session.request({ ':path': path, ':method': method }));
    const both = await Promise.all([get('/piped'), get('/piped'), get('/text')]);
    for (const { body, headers } of both.slice(0, 2)) {
      t.equal(body.length, 46 * LARGE.length);
      t.ok(body.subarray(LARGE.length, 2 * LARGE.length).equals(LARGE));
      t.match(headers, { ':status': 200, 'x-own': 'a', 'content-type': /text\/plain/, date: /GMT$/ });
    }
    t.match(both[2], { headers: { ':status': 201, 'set-cookie': ['a=b', 'c=d'] } });
    t.equal(both[2].body.toString(), 'é');
    t.match(await get('/empty'), { headers: { ':status': 204 }, body: Buffer.alloc(0) });
    const head = await get('/text', 'HEAD');
    t.match(head.headers, { ':status': 201, 'content-length': '2' });
    t.equal(head.body.length, 0);
    await t.rejects(get('/broken'), 'a stream that fails is reset');
    t.equal((await get('/text')).headers[':status'], 201, 'and the connection goes on');
    session.close();
  }
});

t.test('bodies of requests come through windows that are smaller', async (t) => {
  const api = await start(t);
  const session = connectHttp2(api.baseUrl);
  t.teardown(() => session.destroy());
  const headers = { ':method': 'POST', 'content-type': 'application/json', authorization: AUTHORIZATION };
  const metadata = { schema: 'x', text: 'y'.repeat(60_000) };
  const body = JSON.stringify({ artifact: { sha256: 'ab'.repeat(32) }, metadata });
  const posts = Array.from({ length: 40 }, async () => {
    const stream = session.request({ ...headers, ':path': '/v1/attestations' });
    stream.end(body);
    return (await read(stream)).headers[':status'];
  });
  t.ok((await Promise.all(posts)).every((status) => status === 201));
  const unread = session.request({ ...headers, ':path': '/v1/nothing' });
  unread.end(Buffer.alloc(500_000, ' '));
  t.equal((await read(unread)).headers[':status'], 404, 'a body that nobody reads holds up nothing');
  await livesOn(t, api);
});

/** A GET of `/piped`, every field literal. */
const PIPED = Buffer.concat([
  Buffer.from([0x82, 0x86, 0x04, 6]),
  Buffer.from('/piped'),
  Buffer.from([0x01, 1, 0x61]),
]);

t.test('a client that ends its body when it sees the response gets the whole response', async (t) => {
  const api = await startApiServer(t, { limits: { maxBodyBytes: LARGE.length } });
  const session = connectHttp2(api.baseUrl);
  t.teardown(() => session.destroy());
  for (const type of ['application/grpc', 'application/grpc-web+proto', 'application/proto']) {
    const stream = session.request({
      ':method': 'POST',
      ':path': RPC_PATH,
      'content-type': type,
      'content-length': 2 * LARGE.length,
      authorization: AUTHORIZATION,
      te: 'trailers',
    });
    // As connect-go does: a body shorter than declared is malformed, and the server resets its stream.
    stream.once('response', () => stream.end());
    const reading = read(stream);
    let sent = 0;
    for (; sent < 8 && !stream.writableEnded; sent++) {
      stream.write(LARGE.subarray(0, LARGE.length / 4));
      await setTimeout(10);
    }
    t.equal(sent, 8, 'no response comes before the body has');
    stream.end();
    await t.resolves(reading, type);
    t.equal(stream.rstCode, constants.NGHTTP2_NO_ERROR, type);
  }
});

t.test('a client that reads nothing at all is cut off, and others go on', async (t) => {
  const api = await start(t);
  const client = await openRawHttp2(api.port);
  const wide = Buffer.concat([Buffer.from([0, 4]), uint32(2 ** 30)]);
  client.send(frame(SETTINGS, 0, 0, wide), frame(WINDOW, 0, 0, uint32(2 ** 30)));
  for (let id = 1; id < 40; id += 2) client.send(frame(HEADERS, 5, id, PIPED));
  client.socket.pause();
  await api.observed(({ path, status }) => path === '/piped' && status === 499);
  await livesOn(t, api);
  client.socket.destroy();
});

const open = (id: number) => frame(HEADERS, END_HEADERS, id, POST_BLOCK);
const many = (one: Buffer) => Buffer.concat(Array.from({ length: 4_000 }, () => one));
const rounds = (framesOf: (id: number) => Buffer[]) =>
  Buffer.concat(Array.from({ length: 4_000 }, (_, i) => framesOf(i * 2 + 1)).flat());

t.test('floods of frames leave other connections served', async (t) => {
  const api = await startApiServer(t);
  const floods: [string, Buffer][] = [
    ['PING', many(frame(PING, 0, 0, Buffer.alloc(8)))],
    ['SETTINGS', many(EMPTY_SETTINGS)],
    ['PRIORITY', many(frame(PRIORITY, 0, 1, Buffer.alloc(5)))],
    ['WINDOW_UPDATE', many(frame(WINDOW, 0, 0, uint32(1)))],
    ['unknown frames', many(frame(0xee, 0, 0))],
    ['DATA without content', Buffer.concat([open(1), many(frame(DATA, 0, 1))])],
    ['requests that are reset', rounds((id) => [open(id), frame(RST, 0, id, uint32(8))])],
    ['requests that are malformed', rounds((id) => [frame(HEADERS, BOTH, id, Buffer.from([0x82]))])],
    ['requests beyond the streams that may be open', rounds((id) => [open(id)])],
  ];
  for (const [what, bytes] of floods) {
    const connection = await openRawHttp2(api.port);
    connection.send(bytes);
    const startedMs = performance.now();
    await livesOn(t, api);
    t.ok(performance.now() - startedMs < 2_000, what);
    connection.socket.destroy();
  }
});

t.test('streams beyond the maximum are reset for another attempt', async (t) => {
  const api = await startApiServer(t, { limits: { maxStreams: 2 } });
  const connection = await openRawHttp2(api.port);
  connection.send(open(1), open(3), open(5));
  const reset = await connection.find(({ type }) => type === RST);
  t.equal(reset.streamId, 5);
  t.equal(reset.payload.readUInt32BE(), constants.NGHTTP2_REFUSED_STREAM);
  connection.socket.destroy();
});
