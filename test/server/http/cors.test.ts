import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import t from 'tap';
import { InfoService } from '../../../gen/attestation/v1/service_pb.js';
import { httpBindings } from '../../../src/server/http/rest/http-rule.js';
import { startApp } from '../../support/app.js';
import { publicMethods, rpcName } from '../../support/calling/rpcs.js';
import { callers } from '../../support/calling/surfaces.js';
import { newKey } from '../../support/calling/test-keys.js';

const ORIGIN = 'https://app.example';
const OTHER = 'https://other.example';
const app = await startApp(t, { env: { CORS_ORIGINS: `${ORIGIN},https://second.example` } });
const { key } = await newKey(app);
const authorization = `Bearer ${key}`;
const RPC = '/attestation.v1.InfoService/GetHealth';
const PATHS = ['/v1/service/health', RPC];

t.test('a page of a permitted origin may call and read every surface; of another it may not', async (t) => {
  for (const { name, call, close } of callers(app.baseUrl)) {
    t.teardown(close);
    for (const [origin, allowed] of [
      [ORIGIN, ORIGIN],
      [OTHER, undefined],
      ['null', undefined],
    ] as const) {
      const { headers, code } = await call(
        InfoService.method.getHealth,
        {},
        { headers: { authorization, origin } },
      );
      t.equal(code, 'ok', name);
      t.equal(headers['access-control-allow-origin'], allowed, `${name} from ${origin}`);
      t.match(headers.vary, 'origin', 'no cache hands one origin the answer of another');
      t.equal(headers['access-control-allow-credentials'], undefined);
    }
    const refused = await call(InfoService.method.getHealth, {}, { headers: { origin: ORIGIN } });
    if (name === 'grpc-js') continue;
    t.equal(refused.headers['access-control-allow-origin'], ORIGIN, `${name}: errors can be read as well`);
    t.match(refused.headers['access-control-expose-headers'], /x-request-id.*retry-after.*grpc-status/);
  }
});

t.test('a preflight is answered for permitted origins alone', async (t) => {
  const wanted = 'authorization,content-type,idempotency-key,connect-protocol-version,x-grpc-web';
  const ask = { 'access-control-request-method': 'POST', 'access-control-request-headers': wanted };
  for (const path of PATHS) {
    const { status, headers } = await app.rest(path, {
      method: 'OPTIONS',
      headers: { ...ask, origin: ORIGIN },
    });
    t.equal(status, 204, path);
    t.equal(headers['access-control-allow-origin'], ORIGIN);
    t.equal(headers['access-control-allow-headers'], wanted);
    t.match(headers['access-control-allow-methods'], 'POST');
    const refused = await app.rest(path, { method: 'OPTIONS', headers: { ...ask, origin: OTHER } });
    t.notOk(refused.headers['access-control-allow-origin'], path);
    t.notOk(refused.headers['access-control-allow-methods'], path);
  }
});

t.test('public routes allow pages of any origin', async (t) => {
  for (const path of [
    '/verify/trust_roots.json',
    '/verify/trusted_root.json',
    '/openapi.json',
    '/descriptor.binpb',
  ]) {
    for (const origin of [ORIGIN, OTHER]) {
      const { status, headers } = await app.rest(path, { headers: { origin } });
      t.equal(status, 200, path);
      t.equal(headers['access-control-allow-origin'], '*', `${path} from ${origin}`);
      t.notMatch(headers.vary ?? '', /origin/i, 'one answer for all, to caches as well');
    }
  }
});

t.test('preflights of public routes list their methods and allow If-None-Match', async (t) => {
  const checkpoint = '/verify/log/live/checkpoint';
  for (const path of ['/verify/trust_roots.json', checkpoint, '/openapi.json', '/docs']) {
    const headers = {
      origin: OTHER,
      'access-control-request-method': 'GET',
      'access-control-request-headers': 'if-none-match',
    };
    const preflight = await app.rest(path, { method: 'OPTIONS', headers });
    t.equal(preflight.status, 204, path);
    t.match(preflight.headers, {
      allow: 'GET, HEAD, OPTIONS',
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'GET, HEAD',
      'access-control-allow-headers': 'if-none-match',
    });
    const { headers: exposing } = await app.rest(path, { headers: { origin: OTHER } });
    if (path !== checkpoint) t.match(exposing['access-control-expose-headers'], 'etag');
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const refused = await app.rest(path, { method });
      t.match(refused, { status: 405, headers: { allow: 'GET, HEAD, OPTIONS' } }, `${method} ${path}`);
      t.match(refused.json, { error: { code: 'request.method_not_allowed' } });
    }
  }
});

t.test("reads have no side effects, and caches revalidate Connect's GET before each use", async (t) => {
  for (const method of await publicMethods()) {
    const isRead = httpBindings(method).every(({ httpMethod }) => httpMethod === 'GET');
    t.equal(method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS, isRead, rpcName(method));
  }
  const query = `?connect=v1&encoding=json&message=${encodeURIComponent('{}')}`;
  const { status, headers, json } = await app.rest(RPC + query, { apiKey: key });
  t.same([status, json], [200, { status: 'ok' }]);
  t.equal(headers['cache-control'], 'private, no-cache');
  t.equal(headers.vary, 'origin, accept-encoding');
  const refused = await app.rest(RPC + query);
  t.equal(refused.status, 401);
  const write = await app.rest(`/attestation.v1.AttestationService/CreateAttestation${query}`, {
    apiKey: key,
  });
  t.match(write, { status: 405, headers: { allow: 'POST, OPTIONS' } }, 'what writes has no GET');
});
