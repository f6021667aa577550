/** Rate headers of every response to an authenticated request, those without a route included. */
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import t, { type Test } from 'tap';
import { startApp } from '../../support/app.js';
import { newKey } from '../../support/calling/test-keys.js';

const app = await startApp(t);

type Request = {
  method: string;
  path: string;
  headers?: Record<string, string>;
  body?: string;
  /** Of HTTP; 200 where gRPC tells the error in its own status. */
  status: number;
};

const BATCH = '/attestation.v1.BatchService/GetBatch';
const CREATE = '/attestation.v1.AttestationService/CreateAttestation';
const CONNECT = { 'content-type': 'application/json', 'connect-protocol-version': '1' };

/** Requests that no credentials make a call of. */
const UNROUTED: readonly Request[] = [
  { method: 'GET', path: '/v1/nothing-like-it', status: 404 },
  { method: 'GET', path: '/v1/attestations/', status: 404 },
  { method: 'POST', path: '/nothing/like/it', status: 404 },
  { method: 'HEAD', path: '/v1/nothing-like-it', status: 404 },
  { method: 'PUT', path: '/v1/attestations', status: 405 },
  { method: 'DELETE', path: '/v1/service/health', status: 405 },
  { method: 'OPTIONS', path: '/v1/attestations', status: 204 },
  { method: 'PUT', path: BATCH, status: 405 },
  { method: 'GET', path: CREATE, status: 405 },
  { method: 'POST', path: '/attestation.v1.BatchService/Nothing', headers: CONNECT, body: '{}', status: 404 },
  {
    method: 'POST',
    path: '/attestation.v1.BatchService/Nothing',
    headers: { 'content-type': 'application/grpc' },
    body: '\0\0\0\0\0',
    status: 200,
  },
];

/** Authenticated calls that are refused later. */
const REFUSED: readonly Request[] = [
  { method: 'POST', path: BATCH, headers: { 'content-type': 'text/plain' }, body: 'x', status: 415 },
  { method: 'POST', path: CREATE, headers: { 'content-type': 'text/plain' }, body: 'x', status: 415 },
  {
    method: 'POST',
    path: '/v1/attestations',
    headers: { 'content-type': 'text/plain' },
    body: 'x',
    status: 415,
  },
  { method: 'GET', path: '/v1/batches/btc_01JX5WQ4ZZZZZZZZZZZZZZZZZZ', status: 404 },
  { method: 'GET', path: '/v1/batches?limit=0', status: 400 },
];

type Answer = { status: number; headers: Record<string, string> };

/** Sends a request over either version of HTTP. */
type Send = (request: Request, authorization: string | undefined) => Promise<Answer>;

const overHttp1: Send = async ({ method, path, headers = {}, body }, authorization) => {
  return app.rest(path, {
    method,
    headers: { ...headers, ...(authorization === undefined ? {} : { authorization }) },
    body,
  });
};

function overHttp2(t: Test): Send {
  const session = connectHttp2(app.baseUrl);
  t.teardown(() => session.destroy());
  return async ({ method, path, headers = {}, body }, authorization) => {
    const credentials = authorization === undefined ? {} : { authorization };
    const stream = session.request({ ':method': method, ':path': path, ...headers, ...credentials });
    stream.end(body);
    const [got] = (await once(stream, 'response')) as [Record<string, string>];
    stream.resume();
    await once(stream, 'close');
    return { status: Number(got[':status']), headers: got };
  };
}

const RATE = [
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'ratelimit',
  'ratelimit-policy',
];
const rateOf = ({ headers }: Answer) => RATE.filter((name) => headers[name] !== undefined);

for (const version of ['HTTP/1.1', 'HTTP/2']) {
  t.test(`an API key gets its rate headers on every path, over ${version}`, async (t) => {
    const send = version === 'HTTP/2' ? overHttp2(t) : overHttp1;
    const { key } = await newKey(app);
    for (const request of [...UNROUTED, ...REFUSED]) {
      const what = `${request.method} ${request.path}`;
      for (const scheme of ['Bearer', 'bearer']) {
        const answer = await send(request, `${scheme} ${key}`);
        t.equal(answer.status, request.status, what);
        t.same(rateOf(answer), RATE, what);
      }
    }
  });

  t.test(`strangers get the same errors without them, over ${version}`, async (t) => {
    const send = version === 'HTTP/2' ? overHttp2(t) : overHttp1;
    for (const request of UNROUTED) {
      for (const authorization of [undefined, 'Bearer svc_live_nobody', 'Basic Zm9v', '']) {
        const answer = await send(request, authorization);
        t.equal(answer.status, request.status, `${request.path} ${authorization}`);
        t.same(rateOf(answer), []);
      }
    }
  });
}

t.test('a request without a route counts as a read, and is that also when none is left', async (t) => {
  const { key } = await newKey(app, { limits: { readsPerSecond: 0 } });
  const authorization = `Bearer ${key}`;
  for (const request of UNROUTED) {
    const answer = await overHttp1(request, authorization);
    t.equal(answer.status, request.status, request.path);
    t.match(answer.headers, { 'x-ratelimit-limit': '0', 'x-ratelimit-remaining': '0' });
  }
  const owner = await newKey(app, { limits: { readsPerSecond: 1_000 } });
  const left: number[] = [];
  for (let i = 0; i < 40; i++) {
    const { headers } = await overHttp1(UNROUTED[0] as Request, `Bearer ${owner.key}`);
    left.push(Number(headers['x-ratelimit-remaining']));
  }
  t.ok(Math.min(...left) < 999, left.join());
});
