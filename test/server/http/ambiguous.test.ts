/** Requests that two readers could read differently: header fields that are repeated, or more than are read. */
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import t from 'tap';
import { frame, openRawHttp2, type SeenFrame } from '../../support/calling/h2-frames.js';
import { exchangeRaw, isEnvelope, parseRaw } from '../../support/calling/raw-http.js';
import { startApiServer } from '../../support/servers/api-server.js';

const api = await startApiServer(t);
const AUTHORIZATION = `authorization: Bearer ${api.key}\r\n`;
const HEALTH = 'GET /v1/service/health HTTP/1.1\r\nhost: a\r\nconnection: close\r\n';
const CREATE = 'POST /v1/attestations HTTP/1.1\r\nhost: a\r\nconnection: close\r\n';
const RPC = '/attestation.v1.InfoService/GetHealth';
const BODY = '{}';

t.test('of more header fields than are read none is ignored: the request is rejected', async (t) => {
  const fields = (count: number) => 'a:\r\n'.repeat(count);
  const most = await exchangeRaw(api.port, `${HEALTH}${fields(997)}${AUTHORIZATION}\r\n`);
  t.equal(parseRaw(most).status, 200, 'the last of 1,000 is read');
  for (const count of [998, 1_500, 3_000]) {
    const answer = await exchangeRaw(api.port, `${HEALTH}${fields(count)}${AUTHORIZATION}\r\n`);
    isEnvelope(t, answer, 431, 'request.headers_too_large');
  }
  const session = connectHttp2(api.baseUrl);
  t.teardown(() => session.destroy());
  await once(session, 'remoteSettings');
  const many = Object.fromEntries(Array.from({ length: 1_500 }, (_, i) => [`x-${i}`, '']));
  const stream = session.request({
    ':path': '/v1/service/health',
    ...many,
    authorization: `Bearer ${api.key}`,
  });
  const outcome = await Promise.race([
    once(stream, 'response').then(
      ([headers]) => headers[':status'] as number,
      () => 'reset',
    ),
    once(stream, 'close').then(() => 'reset'),
  ]);
  t.ok(outcome === 431 || outcome === 'reset', String(outcome));
});

t.test('two media types of a body are rejected, also if they are the same', async (t) => {
  for (const [first, second] of [
    ['application/json', 'text/plain'],
    ['text/plain', 'application/json'],
    ['application/json', 'application/json'],
  ]) {
    const types = `content-type: ${first}\r\nContent-Type: ${second}\r\n`;
    const length = `content-length: ${BODY.length}\r\n`;
    const answer = await exchangeRaw(api.port, `${CREATE}${AUTHORIZATION}${types}${length}\r\n${BODY}`);
    isEnvelope(t, answer, 400, 'request.invalid');
    t.match(parseRaw(answer).body, /content-type twice/);
  }
});

const literal = (name: string, value: string) =>
  Buffer.concat([
    Buffer.from([0x00, name.length]),
    Buffer.from(name),
    Buffer.from([value.length]),
    Buffer.from(value),
  ]);

/** The field block of a call of GetHealth. */
const block = (...fields: Buffer[]) =>
  Buffer.concat([Buffer.from([0x83, 0x86]), literal(':path', RPC), literal(':authority', 'a'), ...fields]);

/** The frames of the response to a call. */
async function call(...fields: Buffer[]): Promise<SeenFrame[]> {
  const connection = await openRawHttp2(api.port);
  connection.send(frame(1, 0x04, 1, block(...fields)), frame(0, 0x01, 1, Buffer.alloc(5)));
  await connection.find(({ streamId, flags }) => streamId === 1 && (flags & 0x01) !== 0);
  connection.socket.destroy();
  return connection.seen.filter(({ streamId }) => streamId === 1);
}

t.test('two credentials on gRPC and gRPC-Web are an error of theirs', async (t) => {
  const grpc = literal('content-type', 'application/grpc');
  const credentials = literal('authorization', `Bearer ${api.key}`);
  const typesOf = (frames: readonly SeenFrame[]) => frames.map(({ type }) => type);
  t.same(typesOf(await call(grpc, credentials)), [1, 0, 1], 'one is served');
  const two = await call(grpc, credentials, credentials);
  t.same(typesOf(two), [1, 1], 'a status without a message');
  // `:status: 200` (RFC 7541, appendix A).
  t.equal(two[0]?.payload[0], 0x88);
  const head = `POST ${RPC} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-type: application/grpc-web\r\n`;
  const length = 'content-length: 5\r\n\r\n\0\0\0\0\0';
  t.match(await exchangeRaw(api.port, head + AUTHORIZATION + length), /grpc-status: ?0/);
  const web = await exchangeRaw(api.port, head + AUTHORIZATION + AUTHORIZATION + length);
  t.equal(parseRaw(web).status, 200);
  t.match(web, /grpc-status: ?3\r\n/);
});

t.test('a quoted parameter of a media type may hold what looks like another one', async (t) => {
  const cases: [type: string, status: number][] = [
    ['application/json; profile="a; charset=latin1"', 400],
    ['application/json; profile="a\\"; charset=latin1"', 400],
    ['application/json; profile="; charset=latin1"; charset=utf-8', 400],
    ['application/json;charset="UTF-8"', 400],
    ['application/json;', 400],
    ['application/json; profile=a; charset=latin1', 415],
    ['application/json; profile="a"; charset=latin1', 415],
    ['application/json; profile="a; charset=utf-8"; charset="latin1"', 415],
  ];
  for (const [type, status] of cases) {
    const response = await fetch(`${api.baseUrl}/v1/attestations`, {
      method: 'POST',
      headers: { 'content-type': type, authorization: `Bearer ${api.key}` },
      body: BODY,
    });
    t.equal(response.status, status, type);
  }
});
