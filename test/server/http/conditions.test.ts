/** `If-Match` (RFC 9110, 13.1.1) wherever a response has an entity tag. */
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import t from 'tap';
import { startApp } from '../../support/app.js';
import { newKey } from '../../support/calling/test-keys.js';
import { creation } from '../rpc/samples.js';

const app = await startApp(t);
const { key } = await newKey(app);
const { json: made } = await app.rest('/v1/attestations', { apiKey: key, body: creation('ab'.repeat(32)) });
await app.drain();

const KEYED = [
  `/v1/attestations/${made.id}/bundle`,
  `/v1/attestations/${made.id}/bundle.json`,
  `/v1/attestations/${made.id}/bundle.tlog-proof`,
  '/v1/service/trust_roots',
];
const PUBLIC = [
  '/openapi.json',
  '/verify/trust_roots.json',
  '/verify/log/live/checkpoint',
  '/verify/log/live/tile/0/000.p/1',
  '/verify/log/live/tile/entries/000.p/1',
];

/** What comes of a request for a path; the code is that of the error. */
async function get(path: string, headers: Record<string, string> = {}, method = 'GET') {
  const apiKey = KEYED.includes(path) ? key : undefined;
  const answer = await app.rest(path, { apiKey, headers, method });
  const error = answer.status < 400 || method === 'HEAD' ? undefined : answer.json.error;
  return { ...answer, code: (error as { code?: string } | undefined)?.code };
}

for (const path of [...KEYED, ...PUBLIC]) {
  t.test(`${path.replace(String(made.id), ':id')} is not sent to who expects another one`, async (t) => {
    const { status, headers } = await get(path);
    const { etag = '' } = headers;
    t.match([status, etag], [200, /^"/]);
    const cases: [ifMatch: string, status: number][] = [
      [etag, 200],
      ['*', 200],
      [` "other" , ${etag}`, 200],
      [`"a, b",${etag}`, 200],
      ['"other"', 412],
      [`W/${etag}`, 412],
      [etag.slice(1, -1), 412],
      ['', 412],
    ];
    for (const [ifMatch, wanted] of cases) {
      const answer = await get(path, { 'if-match': ifMatch });
      t.same(
        [answer.status, answer.code],
        [wanted, wanted === 412 ? 'request.precondition_failed' : undefined],
        ifMatch,
      );
      if (PUBLIC.includes(path) && path !== '/openapi.json')
        t.equal(answer.headers['access-control-allow-origin'], '*');
      if (KEYED.includes(path)) t.match(answer.headers['x-ratelimit-remaining'], /^\d+$/);
    }
    t.equal((await get(path, { 'if-match': '"other"' }, 'HEAD')).status, 412);
    t.equal(
      (await get(path, { 'if-match': '"other"', 'if-none-match': etag })).status,
      412,
      'first of the two',
    );
    t.equal((await get(path, { 'if-match': etag, 'if-none-match': etag })).status, 304);
  });
}

t.test('what is not there stays that', async (t) => {
  const bundle = '/v1/attestations/sub_01JX5WQ3ZZZZZZZZZZZZZZZZZZ/bundle';
  const headers = { 'if-match': '"other"' };
  t.equal((await app.rest(bundle, { apiKey: key, headers })).status, 404);
  t.equal((await app.rest(bundle, { headers })).status, 401);
  t.equal((await app.rest('/verify/log/live/tile/0/999', { headers })).status, 404);
});

t.test('the same over HTTP/2', async (t) => {
  const session = connectHttp2(app.baseUrl);
  t.teardown(() => session.destroy());
  for (const path of [...KEYED, ...PUBLIC]) {
    const stream = session.request({
      ':path': path,
      authorization: `Bearer ${key}`,
      'if-match': '"other"',
    });
    const [headers] = (await once(stream, 'response')) as [Record<string, string>];
    stream.close();
    t.equal(headers[':status'], 412, path);
  }
});
