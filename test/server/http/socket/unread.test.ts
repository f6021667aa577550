/** Large answers whose clients do not read: how many bytes of them are held. */
import { once } from 'node:events';
import { type ClientHttp2Stream, connect as connectHttp2, constants } from 'node:http2';
import { create, toBinary } from '@bufbuild/protobuf';
import t from 'tap';
import { BatchService, GetBatchRequestSchema } from '../../../../gen/attestation/v1/batches_pb.js';
import { ServerReflectionRequestSchema } from '../../../../gen/grpc/reflection/v1/reflection_pb.js';
import { standardServices } from '../../../../src/server/process/api/standard-rpcs.js';
import {
  enveloped,
  exchangeRaw,
  isEnvelope,
  openSocket,
  parseRaw,
} from '../../../support/calling/raw-http.js';
import { livesOn } from '../../../support/calling/surfaces.js';
import { KEYS, LARGE_BYTES, startApiServer } from '../../../support/servers/api-server.js';
import { until } from '../../../support/until.js';

/** Room for one answer of a key, and for two of all without a key. */
const MAX_UNREAD_BYTES = 9_000_000;
const ID = 'btc_large';
const REST_PATH = `/v1/batches/${ID}`;
const RPC_PATH = `/${BatchService.typeName}/${BatchService.method.getBatch.name}`;

type Way = { name: string; headers: Record<string, string>; body?: Uint8Array };
const MESSAGE = toBinary(GetBatchRequestSchema, create(GetBatchRequestSchema, { id: ID }));
const POST = { ':method': 'POST', ':path': RPC_PATH };
const WAYS: readonly Way[] = [
  { name: 'REST', headers: { ':path': REST_PATH } },
  { name: 'Connect', headers: { ...POST, 'content-type': 'application/proto' }, body: MESSAGE },
  {
    name: 'gRPC',
    headers: { ...POST, 'content-type': 'application/grpc+proto', te: 'trailers' },
    body: enveloped(0, Buffer.from(MESSAGE)),
  },
  {
    name: 'gRPC-Web',
    headers: { ...POST, 'content-type': 'application/grpc-web+proto' },
    body: enveloped(0, Buffer.from(MESSAGE)),
  },
];

/** Asks on a connection of HTTP/2 whose streams take `window` bytes before the client reads. */
function openSession(
  t: Tap,
  baseUrl: string,
  window?: number,
): (way: Way, key?: string) => ClientHttp2Stream {
  const settings = window === undefined ? {} : { initialWindowSize: window };
  const session = connectHttp2(baseUrl, { settings });
  t.teardown(() => session.destroy());
  return ({ headers, body }, key) => {
    const authorization = key === undefined ? {} : { authorization: `Bearer ${key}` };
    const stream = session.request({ ...headers, ...authorization }, { endStream: body === undefined });
    stream.on('error', () => {});
    if (body !== undefined) stream.end(body);
    return stream;
  };
}

type Tap = { teardown: (work: () => void) => void };

/** Reads an answer to its end: how many bytes, and the status in its headers or trailers. */
async function readAll(stream: ClientHttp2Stream): Promise<{ bytes: number; status: string }> {
  const read = { bytes: 0, status: '' };
  stream.on('data', (chunk: Buffer) => {
    read.bytes += chunk.length;
  });
  stream.on('response', (headers) => {
    read.status = String(headers[':status']);
  });
  stream.on('trailers', (trailers) => {
    read.status = String(trailers['grpc-status']);
  });
  await once(stream, 'close');
  return read;
}

t.test('one key holds a part of the memory only, and other keys are served', async (t) => {
  const api = await startApiServer(t, { limits: { maxUnreadBytes: MAX_UNREAD_BYTES } });
  const askGreedily = openSession(t, api.baseUrl, 0);
  const ask = openSession(t, api.baseUrl);
  const isServed = async (way: Way, key: string) => (await readAll(ask(way, key))).bytes >= LARGE_BYTES;
  for (const held of WAYS) {
    const unread = askGreedily(held, KEYS.all);
    await once(unread, 'response');
    const statuses: string[] = [];
    for (const way of WAYS) {
      const { bytes, status } = await readAll(ask(way, KEYS.all));
      t.ok(bytes < 10_000, `${way.name} is refused while ${held.name} is held`);
      statuses.push(status);
      await until('another key is served', () => isServed(way, KEYS.other));
    }
    t.same(statuses, ['503', '503', '14', '200'], held.name);
    const [head] = await once(
      ask({ name: '', headers: { ':method': 'HEAD', ':path': REST_PATH } }, KEYS.all),
      'response',
    );
    t.equal(head[':status'], 200, 'what has no body holds nothing');
    unread.close(constants.NGHTTP2_CANCEL);
    for (const way of WAYS) await until('it was given back', () => isServed(way, KEYS.all));
  }
  await livesOn(t, api);
});

t.test('so it is on HTTP/1.1', async (t) => {
  const api = await startApiServer(t, { limits: { maxUnreadBytes: MAX_UNREAD_BYTES } });
  const request = (key: string) =>
    `GET ${REST_PATH} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${key}\r\nconnection: close\r\n\r\n`;
  const socket = await openSocket(api.port);
  socket.pause();
  socket.write(request(KEYS.all).replace('connection: close\r\n', '').repeat(200));
  const refused = await until('one is refused', async () => {
    const answer = await exchangeRaw(api.port, request(KEYS.all));
    return parseRaw(answer).status === 503 ? answer : undefined;
  });
  isEnvelope(t, refused, 503, 'service.unavailable');
  t.equal(parseRaw(refused).headers['retry-after'], '1');
  t.equal(parseRaw(await exchangeRaw(api.port, request(KEYS.other))).status, 200);
  socket.destroy();
  const status = async () => parseRaw(await exchangeRaw(api.port, request(KEYS.all))).status;
  await until('it was given back', async () => (await status()) === 200);
});

t.test(
  'a batch is rejected before it is read once its key has its part, and after it if it changed nothing',
  async (t) => {
    const api = await startApiServer(t, { limits: { maxUnreadBytes: MAX_UNREAD_BYTES } });
    const item = { artifact: { sha256: 'a'.repeat(64) }, metadata: { schema: 'purl' } };
    const batch = (items: number): Way => ({
      name: `a batch of ${items}`,
      headers: { ':method': 'POST', ':path': '/v1/attestations:batch', 'content-type': 'application/json' },
      body: Buffer.from(JSON.stringify({ items: Array(items).fill(item) })),
    });
    const single: Way = {
      name: 'a creation',
      headers: { ...batch(1).headers, ':path': '/v1/attestations' },
      body: Buffer.from(JSON.stringify(item)),
    };
    const askGreedily = openSession(t, api.baseUrl, 0);
    const ask = openSession(t, api.baseUrl);
    const statusOf = async (way: Way, key = KEYS.all) => (await readAll(ask(way, key))).status;
    const hold = async () => {
      const unread = askGreedily(batch(2), KEYS.all);
      const [head] = await once(unread, 'response');
      t.equal(head[':status'], 200);
      return unread;
    };
    const first = await hold();
    t.equal(await statusOf(batch(1)), '503', 'it changed nothing');
    const second = await hold();
    const called = api.calls.length;
    for (const items of [1, 2]) t.equal(await statusOf(batch(items)), '503');
    t.equal(api.calls.length, called, 'none reached its handler');
    t.equal(await statusOf(single), '201', 'single creations are not affected');
    t.equal(await statusOf(batch(2), KEYS.other), '200', 'nor is another key');
    for (const unread of [first, second]) unread.close(constants.NGHTTP2_CANCEL);
    await until('it was given back', async () => (await statusOf(batch(2))) === '200');
  },
);

t.test('an address without a key has a part, and all of them have half', async (t) => {
  const large: Way = { name: 'public', headers: { ':path': '/large' } };
  for (const { trustedProxies, served } of [
    { trustedProxies: [], served: 1 },
    { trustedProxies: ['127.0.0.0/8'], served: 2 },
  ]) {
    const api = await startApiServer(t, {
      limits: { maxUnreadBytes: MAX_UNREAD_BYTES, trustedProxies },
      publicRoutes: (app) => {
        // As the mirror has it.
        app.setErrorHandler((error) => {
          throw error;
        });
        app.get('/large', async (_request, reply) =>
          reply.header('cache-control', 'public').send(Buffer.alloc(LARGE_BYTES)),
        );
      },
    });
    const askGreedily = openSession(t, api.baseUrl, 0);
    const statusOf = async (stream: ClientHttp2Stream) => {
      const [headers] = await once(stream, 'response');
      return headers[':status'];
    };
    const held = Array.from({ length: served }, () => askGreedily(large));
    for (const stream of held) t.equal(await statusOf(stream), 200);
    const refused = askGreedily(large);
    const [headers] = await once(refused, 'response');
    t.match(headers, { ':status': 503, 'retry-after': '1', 'cache-control': undefined });
    const head = { name: '', headers: { ':method': 'HEAD', ':path': '/large' } };
    t.equal(await statusOf(askGreedily(head)), 200, 'what has no body holds nothing');
    const ask = openSession(t, api.baseUrl);
    t.ok((await readAll(ask(WAYS[0]!, KEYS.all))).bytes >= LARGE_BYTES, 'keys are served');
    for (const stream of held) stream.close(constants.NGHTTP2_CANCEL);
    await until('it was given back', async () => (await readAll(ask(large))).bytes === LARGE_BYTES);
  }
});

t.test('large answers of streams that anyone may open count as well', async (t) => {
  const api = await startApiServer(t, {
    limits: { maxUnreadBytes: 400_000 },
    publicServices: standardServices([BatchService], async () => true),
  });
  const wanted = { case: 'fileContainingSymbol' as const, value: BatchService.typeName };
  const question = create(ServerReflectionRequestSchema, { messageRequest: wanted });
  const reflection: Way = {
    name: 'reflection',
    headers: {
      ':method': 'POST',
      ':path': '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
      'content-type': 'application/grpc+proto',
      te: 'trailers',
    },
    body: enveloped(0, Buffer.from(toBinary(ServerReflectionRequestSchema, question))),
  };
  const ask = openSession(t, api.baseUrl);
  const { bytes, status } = await readAll(ask(reflection));
  t.ok(bytes > 65_536 && bytes < 100_000, `${bytes} bytes, of which half has room for two`);
  t.equal(status, '0');
  const askGreedily = openSession(t, api.baseUrl, 0);
  const held = [askGreedily(reflection), askGreedily(reflection)];
  for (const stream of held) await once(stream, 'response');
  const { bytes: none, status: unavailable } = await readAll(ask(reflection));
  t.equal(none, 0);
  t.equal(unavailable, '14');
  for (const stream of held) stream.close(constants.NGHTTP2_CANCEL);
  await until('it was given back', async () => (await readAll(ask(reflection))).status === '0');
});
