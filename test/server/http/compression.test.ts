import { gunzipSync } from 'node:zlib';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { createClient } from '@connectrpc/connect';
import {
  compressionGzip,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node';
import { compressionAlgorithms, credentials, Metadata, makeGenericClientConstructor } from '@grpc/grpc-js';
import t from 'tap';
import { request } from 'undici';
import { AttestationService } from '../../../gen/attestation/v1/attestations_pb.js';
import { BatchSchema, BatchService, GetBatchRequestSchema } from '../../../gen/attestation/v1/batches_pb.js';
import { InfoService, TrustRootsSchema } from '../../../gen/attestation/v1/service_pb.js';
import { KEYS, startApiServer } from '../../support/servers/api-server.js';

const HEADERS = { authorization: `Bearer ${KEYS.all}` };
const LARGE = '/v1/batches/btc_large';

type Answer = { status: number; headers: Record<string, string>; body: Buffer };

async function get(
  url: string,
  headers: Record<string, string> = {},
  method: 'GET' | 'HEAD' = 'GET',
): Promise<Answer> {
  const answer = await request(url, { method, headers: { ...HEADERS, ...headers } });
  const body = Buffer.from(await answer.body.arrayBuffer());
  return { status: answer.statusCode, headers: answer.headers as Record<string, string>, body };
}

t.test('a long REST answer is compressed for those who take gzip', async (t) => {
  const { baseUrl } = await startApiServer(t);
  const plain = await get(baseUrl + LARGE);
  t.notOk(plain.headers['content-encoding']);
  t.equal(plain.headers.vary, 'accept-encoding');
  for (const accepted of ['gzip', 'GZIP', 'br, gzip;q=0.5', '*', 'x-gzip', 'deflate, gzip ; q=1.0']) {
    const { headers, body } = await get(baseUrl + LARGE, { 'accept-encoding': accepted });
    t.equal(headers['content-encoding'], 'gzip', accepted);
    t.equal(headers['content-length'], String(body.length));
    t.equal(headers['content-type'], 'application/json');
    t.equal(headers.vary, 'accept-encoding');
    t.ok(gunzipSync(body).equals(plain.body));
  }
  for (const accepted of [
    '',
    'br',
    'identity',
    'gzip;q=0',
    'gzip; q=0.000',
    '*;q=0',
    'gzip;q=0, *',
    'q=1',
    ';;,,=',
    'gzipped',
  ]) {
    const answer = await get(baseUrl + LARGE, { 'accept-encoding': accepted });
    t.notOk(answer.headers['content-encoding'], accepted);
    t.ok(answer.body.equals(plain.body));
  }
  const short = await get(`${baseUrl}/v1/batches/btc_1`, { 'accept-encoding': 'gzip' });
  t.notOk(short.headers['content-encoding'], 'a short one is not worth it');
});

t.test('the tag of a compressed answer is weak, and either form answers for the other', async (t) => {
  const roots = create(TrustRootsSchema, {
    timestampCalendars: Array(2_000).fill('https://calendar.example'),
  });
  const unused = () => Promise.reject(new Error('not part of this test'));
  const handlers = { getTrustRoots: async () => roots, getHealth: unused, getMe: unused };
  const { baseUrl } = await startApiServer(t, { services: [{ desc: InfoService, handlers }] });
  const url = `${baseUrl}/v1/service/trust_roots`;
  const plain = await get(url);
  const short = await get(url, { 'accept-encoding': 'gzip' });
  t.match(plain.headers.etag, /^"[^"]+"$/);
  t.equal(short.headers.etag, `W/${plain.headers.etag}`);
  for (const tag of [plain.headers.etag, short.headers.etag]) {
    for (const accepted of ['gzip', 'identity']) {
      const same = await get(url, { 'if-none-match': String(tag), 'accept-encoding': accepted });
      t.match(same, { status: 304, headers: { etag: plain.headers.etag, vary: 'accept-encoding' } });
      t.equal(same.body.length, 0);
    }
  }
  const head = await get(url, { 'accept-encoding': 'gzip' }, 'HEAD');
  for (const name of ['content-encoding', 'content-length', 'etag', 'vary']) {
    t.equal(head.headers[name], short.headers[name], `HEAD says the same ${name}`);
  }
});

t.test('Connect, gRPC and gRPC-Web accept and send gzip', async (t) => {
  const api = await startApiServer(t);
  const compression = {
    sendCompression: compressionGzip,
    acceptCompression: [compressionGzip],
    compressMinBytes: 0,
  };
  const http1 = { baseUrl: api.baseUrl, httpVersion: '1.1', ...compression } as const;
  const transports = {
    Connect: createConnectTransport(http1),
    'Connect JSON': createConnectTransport({ ...http1, useBinaryFormat: false }),
    gRPC: createGrpcTransport({ baseUrl: api.baseUrl, ...compression }),
    'gRPC-Web': createGrpcWebTransport(http1),
  };
  for (const [name, transport] of Object.entries(transports)) {
    const metadata = { schema: 'x', text: 'y'.repeat(60_000) };
    const input = { artifact: { sha256: '0'.repeat(64) }, metadata };
    const attestations = createClient(AttestationService, transport);
    const made = await attestations.createAttestation(input, { headers: HEADERS });
    t.same(made.metadata, metadata, name);
    const sent = api.calls.at(-1);
    t.equal(
      sent?.header(name === 'gRPC' || name === 'gRPC-Web' ? 'grpc-encoding' : 'content-encoding'),
      'gzip',
    );
    const { checkpoint } = await createClient(BatchService, transport).getBatch(
      { id: 'btc_large' },
      { headers: HEADERS },
    );
    t.equal(checkpoint.length, 2_000_000);
  }
});

t.test('an answer is no longer than its compressed form', async (t) => {
  const { baseUrl } = await startApiServer(t);
  const ask = async (type: string, accept: Record<string, string>, body: string | Buffer) => {
    const url = `${baseUrl}/attestation.v1.BatchService/GetBatch`;
    const headers = { ...HEADERS, 'content-type': type, ...accept };
    const answer = await request(url, { method: 'POST', headers, body });
    return { headers: answer.headers, body: Buffer.from(await answer.body.arrayBuffer()) };
  };
  const connect = await ask('application/json', { 'accept-encoding': 'gzip' }, '{"id":"btc_large"}');
  t.equal(connect.headers['content-encoding'], 'gzip');
  t.ok(connect.body.length < 20_000);
  const message = Buffer.from(
    toBinary(GetBatchRequestSchema, create(GetBatchRequestSchema, { id: 'btc_large' })),
  );
  const framed = Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]);
  const web = await ask('application/grpc-web+proto', { 'grpc-accept-encoding': 'gzip' }, framed);
  t.equal(web.headers['grpc-encoding'], 'gzip');
  t.equal(web.body[0], 1, 'the message is flagged as compressed');
  t.ok(web.body.length < 20_000);
});

t.test('grpc-js sends and reads compressed messages', async (t) => {
  const api = await startApiServer(t);
  const channel = { 'grpc.default_compression_algorithm': compressionAlgorithms.gzip };
  const client = new (makeGenericClientConstructor({}, 'generic'))(
    new URL(api.baseUrl).host,
    credentials.createInsecure(),
    channel,
  );
  t.teardown(() => client.close());
  const metadata = new Metadata();
  metadata.set('authorization', HEADERS.authorization);
  const checkpoint = await new Promise<number>((resolve, reject) => {
    client.makeUnaryRequest(
      '/attestation.v1.BatchService/GetBatch',
      (id: string) => Buffer.from(toBinary(GetBatchRequestSchema, create(GetBatchRequestSchema, { id }))),
      (bytes) => fromBinary(BatchSchema, bytes),
      'btc_large',
      metadata,
      (error, batch) => (error === null ? resolve(batch?.checkpoint.length ?? 0) : reject(error)),
    );
  });
  t.equal(checkpoint, 2_000_000);
  t.equal(api.calls.at(-1)?.header('grpc-encoding'), 'gzip');
});
