import { connect as connectHttp2 } from 'node:http2';
import { gzipSync } from 'node:zlib';
import t from 'tap';
import { request } from 'undici';
import { AttestationService } from '../../../../gen/attestation/v1/attestations_pb.js';
import { InfoService } from '../../../../gen/attestation/v1/service_pb.js';
import { standardServices } from '../../../../src/server/process/api/standard-rpcs.js';
import { enveloped } from '../../../support/calling/raw-http.js';
import { callers, livesOn } from '../../../support/calling/surfaces.js';
import { KEYS, startApiServer } from '../../../support/servers/api-server.js';

const { createAttestation } = AttestationService.method;
const AUTHORIZATION = `Bearer ${KEYS.all}`;
const RPC = '/attestation.v1.InfoService/GetHealth';

t.test('a message that is too large is rejected on every surface', async (t) => {
  const api = await startApiServer(t);
  const input = {
    artifact: { sha256: 'ab'.repeat(32) },
    metadata: { schema: 'purl', large: 'x'.repeat(1_100_000) },
  };
  for (const caller of callers(api.baseUrl)) {
    t.teardown(caller.close);
    const outcome = await caller.call(createAttestation, input, {
      headers: { authorization: AUTHORIZATION },
    });
    t.equal(outcome.code, 'request.too_large', caller.name);
    if (caller.isRest) t.equal(outcome.status, 413);
  }
  await livesOn(t, api);
});

const JSON_HEADERS = { authorization: AUTHORIZATION, 'content-type': 'application/json' };

type Garbage = { what: string; headers: Record<string, string>; body: Buffer | string; code: string };

const BOMB = gzipSync(Buffer.alloc(64 * 1024 * 1024));
const CONNECT_GARBAGE: Garbage[] = [
  ['broken proto', { 'content-type': 'application/proto' }, Buffer.from([0x0a, 0xff]), 'request.invalid'],
  ['broken JSON', { 'content-type': 'application/json' }, '{"id":', 'request.malformed_json'],
  [
    'JSON in another encoding',
    { 'content-type': 'application/json' },
    Buffer.from('{"id":"é"}', 'latin1'),
    'request.malformed_json',
  ],
  ['JSON of another type', { 'content-type': 'application/json' }, '{"id":{}}', 'request.invalid'],
  ['deep JSON', { 'content-type': 'application/json' }, '['.repeat(1_000), 'request.malformed_json'],
  [
    'garbage for gzip',
    { 'content-type': 'application/json', 'content-encoding': 'gzip' },
    'nothing',
    'request.invalid',
  ],
  [
    'half a gzip',
    { 'content-type': 'application/json', 'content-encoding': 'gzip' },
    gzipSync('{"id":"a"}').subarray(0, 15),
    'request.invalid',
  ],
  [
    'a gzip bomb',
    { 'content-type': 'application/json', 'content-encoding': 'gzip' },
    BOMB,
    'request.too_large',
  ],
  [
    'a bad timeout',
    { 'content-type': 'application/json', 'connect-timeout-ms': 'soon' },
    '{}',
    'request.invalid',
  ],
].map(([what, headers, body, code]) => ({ what, headers, body, code }) as Garbage);

t.test('garbage on Connect is rejected in the form of every error', async (t) => {
  const api = await startApiServer(t);
  for (const { what, headers, body, code } of CONNECT_GARBAGE) {
    const answer = await request(`${api.baseUrl}/attestation.v1.BatchService/GetBatch`, {
      method: 'POST',
      headers: { authorization: AUTHORIZATION, ...headers },
      body,
    });
    const json = (await answer.body.json()) as { details?: [{ debug: object }] };
    const details = code === 'request.invalid' ? { errors: [{ path: '', message: /./ }] } : {};
    t.match(json.details?.[0].debug, { code, details }, what);
    t.match(answer.headers['x-request-id'], /^req_/);
  }
  await livesOn(t, api);
});

t.test('what is no call of Connect is rejected with its HTTP status and a line of text', async (t) => {
  const api = await startApiServer(t);
  for (const type of ['text/plain', '///', 'application/json; charset=latin1', 'application/grpc+x', '']) {
    const headers = { authorization: AUTHORIZATION, 'content-type': type };
    const answer = await request(api.baseUrl + RPC, { method: 'POST', headers, body: 'x' });
    t.equal(answer.statusCode, 415, type);
    t.match(answer.headers, { 'content-type': 'text/plain', 'x-request-id': /^req_/ });
    t.equal(await answer.body.text(), 'the content type is none of Connect, gRPC or gRPC-Web\n');
  }
  const compressed = await request(api.baseUrl + RPC, {
    method: 'POST',
    headers: { ...JSON_HEADERS, 'content-encoding': 'zip' },
    body: '{}',
  });
  t.match(await compressed.body.json(), { code: 'unimplemented', message: /gzip only/ });
  t.equal(compressed.headers['accept-encoding'], 'gzip');
  const put = await request(`${api.baseUrl}${RPC}`, { method: 'PUT', headers: JSON_HEADERS, body: '{}' });
  t.equal(put.statusCode, 405);
  t.equal(put.headers.allow, 'GET, POST, OPTIONS');
  t.equal(await put.body.text(), 'this RPC is called by GET or POST\n');
  const options = await request(`${api.baseUrl}${RPC}`, { method: 'OPTIONS' });
  t.match(options, { statusCode: 204, headers: { allow: 'GET, POST, OPTIONS', 'x-request-id': /^req_/ } });
  await livesOn(t, api);
});

t.test('ProtoJSON that names something unknown is rejected, not dropped', async (t) => {
  const api = await startApiServer(t);
  for (const [json, message] of [
    [{ status: 'witnessed' }, /enum attestation\.v1\.BatchStatus from JSON: "witnessed"/],
    [{ limt: 1 }, /key "limt" is unknown/],
    [{ JSON: 1 }, /key "JSON" is unknown/],
  ] as const) {
    const answer = await request(`${api.baseUrl}/attestation.v1.BatchService/ListBatches`, {
      method: 'POST',
      headers: { authorization: AUTHORIZATION, 'content-type': 'application/json' },
      body: JSON.stringify(json),
    });
    t.equal(answer.statusCode, 400);
    t.match(await answer.body.json(), { message, details: [{ debug: { code: 'request.invalid' } }] });
  }
});

t.test('garbage on gRPC and gRPC-Web is rejected in the form of every error', async (t) => {
  const api = await startApiServer(t);
  const session = connectHttp2(api.baseUrl);
  t.teardown(() => session.destroy());
  const good = enveloped(0, Buffer.from([0x0a, 0x01, 0x61]));
  for (const [what, body, code, headers, status] of [
    ['nothing', Buffer.alloc(0), '', {}, 12],
    ['half an envelope', good.subarray(0, 6), 'request.invalid', {}, 3],
    ['two messages', Buffer.concat([good, good]), '', {}, 12],
    ['broken proto', enveloped(0, Buffer.from([0x0a, 0xff])), 'request.invalid', {}, 3],
    ['a length of 4 GiB', Buffer.from([0, 0xff, 0xff, 0xff, 0xff]), 'request.too_large', {}, 8],
    ['compressed without saying how', enveloped(1, gzipSync('')), '', {}, 13],
    ['unknown compression', good, '', { 'grpc-encoding': 'zip' }, 12],
    [
      'garbage for gzip',
      enveloped(1, Buffer.from('nothing')),
      'request.invalid',
      { 'grpc-encoding': 'gzip' },
      3,
    ],
    ['a gzip bomb', enveloped(1, BOMB), 'request.too_large', { 'grpc-encoding': 'gzip' }, 8],
  ] as const) {
    for (const type of ['application/grpc', 'application/grpc-web+proto']) {
      const path = '/attestation.v1.BatchService/GetBatch';
      const stream = session.request({
        ':method': 'POST',
        ':path': path,
        'content-type': type,
        authorization: AUTHORIZATION,
        ...headers,
      });
      let trailers: object = {};
      stream.on('trailers', (got) => {
        trailers = got;
      });
      stream.end(body);
      let text = '';
      for await (const chunk of stream.setEncoding('latin1')) text += chunk;
      const end = type === 'application/grpc' ? JSON.stringify(trailers) : text;
      const details = /grpc-status-details-bin"?: ?"?([\w+/=-]+)/.exec(end)?.[1] ?? '';
      const told = Buffer.from(details, 'base64').toString('latin1');
      // The protocol's own errors have no details.
      if (code === '') t.equal(told, '', `${what} on ${type}`);
      else t.match(told, code, `${what} on ${type}`);
      t.match(end, new RegExp(`grpc-status"?: ?"?${status}\\b`), `${what} on ${type}`);
      if (code === 'request.invalid') t.match(told, 'errors', 'with what is wrong');
    }
  }
  await livesOn(t, api);
});

const REFLECTION = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';
/** Asks for the list of services. */
const LIST = enveloped(0, Buffer.from([0x3a, 0]));

t.test('streams without a key are read frame by frame, and garbage is rejected', async (t) => {
  const api = await startApiServer(t, { publicServices: standardServices([InfoService], async () => true) });
  const session = connectHttp2(api.baseUrl);
  t.teardown(() => session.destroy());
  for (const [what, body, answers, message, headers] of [
    ['nothing', Buffer.alloc(0), 0, '', {}],
    ['two at once', Buffer.concat([LIST, LIST]), 2, '', {}],
    ['half a question', Buffer.concat([LIST, LIST.subarray(0, 6)]), 1, 'incomplete envelope', {}],
    ['no message', enveloped(0, Buffer.from([0x0a, 0xff])), 0, 'premature EOF', {}],
    ['a length of 4 GiB', Buffer.from([0, 0xff, 0xff, 0xff, 0xff]), 0, 'larger than', {}],
    ['compressed without saying how', enveloped(1, gzipSync('')), 0, 'received compressed envelope', {}],
    ['compressed', enveloped(1, gzipSync('')), 0, 'unknown compression', encoded('gzip')],
    ['a bad timeout', LIST, 0, 'timeout value', { 'grpc-timeout': 'x', 'connect-timeout-ms': 'x' }],
  ] as const) {
    for (const type of ['application/grpc', 'application/grpc-web', 'application/connect+proto']) {
      const path = { ':method': 'POST', ':path': REFLECTION };
      const stream = session.request({ ...path, 'content-type': type, ...headers });
      let trailers = '';
      stream.on('trailers', (got) => {
        trailers = JSON.stringify(got);
      });
      for (const byte of body) stream.write(Buffer.from([byte]));
      stream.end();
      let read = '';
      for await (const chunk of stream.setEncoding('latin1')) read += chunk;
      const { length } = read.match(/grpc\.reflection\.v1\.ServerReflection(?!Alpha)\b/g) ?? [];
      t.equal(length ?? 0, answers, `${what} on ${type}`);
      const status = `${read}${trailers}`;
      t.ok(status.replaceAll('%20', ' ').includes(message), `${what} on ${type}: ${message}`);
    }
  }
  await livesOn(t, api);
});

function encoded(encoding: string): Record<string, string> {
  return { 'grpc-encoding': encoding, 'connect-content-encoding': encoding };
}
