import { once } from 'node:events';
import { connect as connectHttp2, constants } from 'node:http2';
import { create, toBinary } from '@bufbuild/protobuf';
import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect';
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node';
import t, { type Test } from 'tap';
import { ErrorDetailSchema } from '../../../../gen/attestation/v1/errors_pb.js';
import { InfoService } from '../../../../gen/attestation/v1/service_pb.js';
import {
  Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from '../../../../gen/grpc/health/v1/health_pb.js';
import {
  ServerReflection,
  ServerReflectionRequestSchema,
} from '../../../../gen/grpc/reflection/v1/reflection_pb.js';
import type { Limits } from '../../../../src/server/http/socket/limits.js';
import { standardServices } from '../../../../src/server/process/api/standard-rpcs.js';
import { frame, openRawHttp2, uint32 } from '../../../support/calling/h2-frames.js';
import { enveloped } from '../../../support/calling/raw-http.js';
import { livesOn } from '../../../support/calling/surfaces.js';
import { KEYS, startApiServer, type TestServer } from '../../../support/servers/api-server.js';
import { until } from '../../../support/until.js';

/** A server with health and reflection. */
function start(t: Test, limits: Partial<Limits> = {}): Promise<TestServer> {
  const publicServices = standardServices([InfoService], async () => true);
  return startApiServer(t, { publicServices, limits: { graceMs: 60_000, ...limits } });
}

/** The ways to call what streams from the server. */
function transports(baseUrl: string): Record<string, Transport> {
  return {
    gRPC: createGrpcTransport({ baseUrl }),
    'gRPC-Web': createGrpcWebTransport({ baseUrl, httpVersion: '1.1' }),
    Connect: createConnectTransport({ baseUrl, httpVersion: '1.1' }),
  };
}

/** What a watch of the whole server is told, and how it ends. */
async function watch(
  transport: Transport,
  { onMessage = () => {}, timeoutMs }: { onMessage?: () => void; timeoutMs?: number } = {},
): Promise<{ told: ServingStatus[]; error: ConnectError }> {
  const told: ServingStatus[] = [];
  try {
    for await (const { status } of createClient(Health, transport).watch({}, { timeoutMs })) {
      told.push(status);
      onMessage();
    }
  } catch (error) {
    return { told, error: ConnectError.from(error) };
  }
  throw new Error('the watch ended without an error');
}

function codeOf(error: ConnectError): string | undefined {
  return error.findDetails(ErrorDetailSchema)[0]?.code;
}

t.test('a watch ends with its last word and UNAVAILABLE when the server closes', async (t) => {
  for (const name of ['gRPC', 'gRPC-Web', 'Connect']) {
    const { server, baseUrl, observed } = await start(t);
    const transport = transports(baseUrl)[name] as Transport;
    const { told, error } = await watch(transport, { onMessage: () => void server.close() });
    t.same(told, [ServingStatus.SERVING, ServingStatus.NOT_SERVING], name);
    t.match(error, { code: Code.Unavailable, rawMessage: 'the server is closing' }, name);
    t.equal(codeOf(error), 'service.unavailable');
    t.match(await observed(({ path }) => path.endsWith('/Watch')), { protocol: name.toLowerCase() });
    await server.close();
  }
});

t.test('while it closes, the server sends GOAWAY, reports it by health, and drops nothing', async (t) => {
  let open = () => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const publicServices = standardServices([InfoService], async () => true);
  const api = await startApiServer(t, {
    publicServices,
    gate,
    limits: { idleGraceMs: 60_000, graceMs: 60_000 },
  });
  const session = connectHttp2(api.baseUrl);
  const call = (path: string, payload: Buffer) => {
    const headers = {
      'content-type': 'application/grpc',
      te: 'trailers',
      authorization: `Bearer ${KEYS.all}`,
    };
    const stream = session.request({ ':method': 'POST', ':path': path, ...headers });
    stream.end(enveloped(0, payload));
    return stream.resume();
  };
  const held = call('/attestation.v1.BatchService/GetBatch', Buffer.from('\n\x08btc_gate'));
  const watching = call('/grpc.health.v1.Health/Watch', Buffer.alloc(0));
  await once(watching, 'data');
  while (api.calls.length === 0) await new Promise(setImmediate);
  const goaway = once(session, 'goaway');
  const trailersOf = (stream: typeof held) =>
    once(stream, 'trailers').then(([trailers]) => trailers['grpc-status']);
  const ended = trailersOf(watching);
  const answered = trailersOf(held);
  const closed = api.server.close();
  const [code] = await goaway;
  t.equal(code, constants.NGHTTP2_NO_ERROR);
  t.equal(await ended, String(Code.Unavailable));
  open();
  t.equal(await answered, '0', 'a call that was accepted is answered');
  session.close();
  await closed;
});

t.test('no more streams are open than may be', async (t) => {
  const api = await start(t, { maxOpenStreams: 2 });
  let over = 0;
  for (const [name, transport] of Object.entries(transports(api.baseUrl))) {
    const stop = new AbortController();
    const health = createClient(Health, transport);
    const held = [1, 2].map(() => health.watch({}, { signal: stop.signal })[Symbol.asyncIterator]());
    for (const one of held) t.match(await one.next(), { value: { status: ServingStatus.SERVING } }, name);
    const { told, error } = await watch(transport);
    t.same(told, []);
    t.equal(error.code, Code.Unavailable);
    t.equal(codeOf(error), 'service.unavailable');
    t.equal(error.metadata.get('retry-after'), '1');
    t.match(
      await health.check({}),
      { status: ServingStatus.SERVING },
      'a call that does not stream is answered',
    );
    const ends = held.map((one) => t.rejects(one.next()));
    stop.abort();
    await Promise.all(ends);
    over += 3;
    await ended(api, over);
    const { told: again } = await watch(transport, { timeoutMs: 1_000 });
    t.same(again, [ServingStatus.SERVING], 'those that ended make room');
    over += 1;
    await ended(api, over);
  }
  await livesOn(t, api);
});

/** Resolves when so many watches are over, as the server sees it. */
async function ended({ observations }: TestServer, count: number): Promise<void> {
  while (observations.filter(({ path }) => path.endsWith('/Watch')).length < count) {
    await new Promise(setImmediate);
  }
}

t.test('streams that a client cancels without reading them make room', async (t) => {
  const api = await start(t, { maxOpenStreams: 2 });
  const session = connectHttp2(api.baseUrl, { settings: { initialWindowSize: 0 } });
  t.teardown(() => session.destroy());
  const unread = [1, 2].map(() => {
    const headers = { 'content-type': 'application/grpc', te: 'trailers' };
    const stream = session.request({
      ':method': 'POST',
      ':path': '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
      ...headers,
    });
    stream.on('error', () => {});
    const request = {
      messageRequest: { case: 'fileContainingSymbol' as const, value: InfoService.typeName },
    };
    const message = create(ServerReflectionRequestSchema, request);
    stream.end(enveloped(0, Buffer.from(toBinary(ServerReflectionRequestSchema, message))));
    return stream;
  });
  await Promise.all(unread.map((stream) => once(stream, 'response')));
  const transport = createGrpcTransport({ baseUrl: api.baseUrl });
  t.equal((await reflect(transport, 1)).error?.code, Code.Unavailable, 'while they are open');
  for (const stream of unread) stream.close(constants.NGHTTP2_CANCEL);
  await until('they made room', async () => (await reflect(transport, 1)).answers === 1, 10_000);
});

const [HEADERS, RST_STREAM, END_HEADERS] = [1, 3, 4];
/** The header fields of a call of reflection on gRPC, every field literal and in no table. */
const REFLECT = Buffer.concat([
  Buffer.from([0x83, 0x86]),
  literal(Buffer.from([0x04]), '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo'),
  literal(Buffer.from([0x01]), 'a'),
  literal(Buffer.from([0x0f, 0x10]), 'application/grpc'),
]);

function literal(name: Buffer, value: string): Buffer {
  return Buffer.concat([name, Buffer.from([value.length]), Buffer.from(value)]);
}

t.test('streams that a client resets as they begin make room', async (t) => {
  const api = await start(t, { maxOpenStreams: 2 });
  const client = await openRawHttp2(api.port);
  t.teardown(() => client.socket.destroy());
  for (let i = 0; i < 200; i++) {
    const id = 2 * i + 1;
    const [head, reset] = [frame(HEADERS, END_HEADERS, id, REFLECT), frame(RST_STREAM, 0, id, uint32(8))];
    if (i % 2 === 0) client.send(head, reset);
    else {
      client.send(head);
      await new Promise(setImmediate);
      client.send(reset);
    }
    await new Promise(setImmediate);
  }
  const transport = createGrpcTransport({ baseUrl: api.baseUrl });
  await until('they made room', async () => (await reflect(transport, 1)).answers === 1, 10_000);
});

t.test('no stream is open longer than it may be', async (t) => {
  const api = await start(t, { maxStreamMs: 500, requestTimeoutMs: 1_000 });
  for (const [name, transport] of Object.entries(transports(api.baseUrl))) {
    const { told, error } = await watch(transport);
    t.same(told, [ServingStatus.SERVING], name);
    t.match(error, { code: Code.Unavailable, rawMessage: /reached its maximum duration/ });
  }
  const reflection = createClient(ServerReflection, createGrpcTransport({ baseUrl: api.baseUrl }));
  const answers = reflection.serverReflectionInfo(askOnceAndStay())[Symbol.asyncIterator]();
  t.match(await answers.next(), { done: false });
  await t.rejects(answers.next(), { code: Code.Unavailable }, 'one that a client leaves open ends as well');
  await livesOn(t, api);
});

async function* askOnceAndStay() {
  yield { messageRequest: { case: 'listServices' as const, value: '' } };
  await new Promise(() => {});
}

t.test('a client sends so many messages on a stream, and may begin another one', async (t) => {
  const api = await start(t);
  const { baseUrl } = api;
  const two: Record<string, Transport> = {
    gRPC: createGrpcTransport({ baseUrl }),
    Connect: createConnectTransport({ baseUrl, httpVersion: '2' }),
  };
  for (const [name, transport] of Object.entries(two)) {
    t.same(await reflect(transport, 64), { answers: 64 }, name);
    const { answers, error } = await reflect(transport, 65);
    t.equal(answers, 64, name);
    t.equal(error?.code, Code.ResourceExhausted, name);
    t.equal(error && codeOf(error), 'request.too_large', name);
  }
  await livesOn(t, api);
});

/** Asks reflection the same so many times on one stream: how often it answered, and how the stream ended. */
async function reflect(
  transport: Transport,
  count: number,
): Promise<{ answers: number; error?: ConnectError }> {
  const request = {
    messageRequest: { case: 'fileByFilename' as const, value: 'attestation/v1/service.proto' },
  };
  async function* requests() {
    for (let i = 0; i < count; i++) yield request;
  }
  let answers = 0;
  try {
    for await (const _answer of createClient(ServerReflection, transport).serverReflectionInfo(requests()))
      answers++;
    return { answers };
  } catch (error) {
    return { answers, error: ConnectError.from(error) };
  }
}

t.test('reflection sends an address 16 MiB at once', async (t) => {
  const api = await start(t, { trustedProxies: [] });
  let error: ConnectError | undefined;
  let answers = 0;
  // The first answer of a stream has all imports. A connection is sent some thirty of them.
  while (error === undefined && answers < 2_000) {
    const transport = createGrpcTransport({ baseUrl: api.baseUrl });
    const asked = await Promise.all(Array.from({ length: 16 }, () => reflect(transport, 1)));
    error = asked.find((one) => one.error !== undefined)?.error;
    answers += asked.filter((one) => one.error === undefined).length;
  }
  t.match(error, { code: Code.Unavailable, rawMessage: /^too much was sent to this address/ });
  t.ok(answers > 64, 'after more than a client needs');
  await livesOn(t, api);
});

t.test("a stream ends with its caller's deadline", async (t) => {
  const api = await start(t);
  for (const [name, transport] of Object.entries(transports(api.baseUrl))) {
    const { error } = await watch(transport, { timeoutMs: 50 });
    t.equal(error.code, Code.DeadlineExceeded, name);
  }
  await livesOn(t, api);
});
