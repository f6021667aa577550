/** Requests without credentials on one connection of HTTP/2: how many tiny ones it takes. */
import { once } from 'node:events';
import { type ClientHttp2Session, connect as connectHttp2, constants } from 'node:http2';
import t from 'tap';
import { InfoService } from '../../../../gen/attestation/v1/service_pb.js';
import { Health } from '../../../../gen/grpc/health/v1/health_pb.js';
import { standardRpcs } from '../../../../src/server/process/api/standard-rpcs.js';
import { frame, GET_BLOCK, openRawHttp2 } from '../../../support/calling/h2-frames.js';
import { enveloped } from '../../../support/calling/raw-http.js';
import { livesOn } from '../../../support/calling/surfaces.js';
import { KEYS, startApiServer } from '../../../support/servers/api-server.js';

const HEALTH = '/v1/service/health';
const AT_ONCE = 50;
const MANY = 1_500;

/** Sends the same over and over until the connection is closed. Returns how many were answered. */
async function ask(
  session: ClientHttp2Session,
  headersOf: (n: number) => Record<string, string>,
  body?: Buffer,
): Promise<number> {
  let answered = 0;
  const one = (n: number) =>
    new Promise<void>((resolve) => {
      const stream = session.request(headersOf(n), { endStream: body === undefined });
      stream.on('response', () => answered++);
      stream.on('error', () => {});
      stream.on('close', resolve);
      if (body !== undefined) stream.end(body);
      stream.resume();
    });
  for (let sent = 0; sent < MANY && !session.closed && !session.destroyed; sent += AT_ONCE) {
    await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => one(sent + i)));
  }
  return answered;
}

t.test('a stranger who repeats a request over and over gets ENHANCE_YOUR_CALM', async (t) => {
  const api = await startApiServer(t);
  // Short enough, although Node's client repeats paths in full where others send one byte.
  for (const path of ['/v1/x', '/x']) {
    const session = connectHttp2(api.baseUrl);
    session.on('error', () => {});
    const goaway = once(session, 'goaway');
    const answered = await ask(session, () => ({ ':path': path }));
    t.equal((await goaway)[0], constants.NGHTTP2_ENHANCE_YOUR_CALM, path);
    t.ok(answered >= 200 && answered < MANY, `${answered} were answered`);
  }
  await livesOn(t, api);
});

t.test('such a connection still answers every request before its GOAWAY, and none after', async (t) => {
  const api = await startApiServer(t);
  const connection = await openRawHttp2(api.port);
  const ids = Array.from({ length: 250 }, (_, i) => 2 * i + 1);
  connection.send(...ids.map((id) => frame(1, 5, id, GET_BLOCK)));
  const goaway = await connection.find(({ type }) => type === 7);
  t.equal(goaway.payload.readUInt32BE(4), constants.NGHTTP2_ENHANCE_YOUR_CALM);
  await connection.closed;
  const last = goaway.payload.readUInt32BE();
  t.ok(last >= 399, `the last one was ${last}`);
  const answered = connection.seen.filter(({ type, flags }) => type === 0 && flags === 1);
  t.strictSame(
    answered.map(({ streamId }) => streamId).sort((a, b) => a - b),
    ids.filter((id) => id <= last),
  );
});

t.test('neither keys nor requests of usual length are limited by it', async (t) => {
  const api = await startApiServer(t, { moreRpcs: standardRpcs([InfoService], async () => true) });
  const authorization = `Bearer ${KEYS.all}`;
  const grpc = { ':method': 'POST', 'content-type': 'application/grpc', te: 'trailers' };
  const check = { ...grpc, ':path': `/${Health.typeName}/Check` };
  for (const [what, headersOf, body] of [
    ['a key', () => ({ ':path': HEALTH, authorization }), undefined],
    ['other paths', (n: number) => ({ ':path': `/v1/nothing/there/is/at/this/path/${n}` }), undefined],
    ['checks of health', () => check, enveloped(0, Buffer.from('\n\x00', 'latin1'))],
  ] as const) {
    const session = connectHttp2(api.baseUrl);
    t.teardown(() => session.destroy());
    t.equal(await ask(session, headersOf, body), MANY, what);
    t.notOk(session.closed, what);
  }
});
