/** The keys of an issuer: when they are read, and what becomes of an issuer that fails. */
import type { ServerResponse } from 'node:http';
import { decodeProtectedHeader, errors } from 'jose';
import t, { type Test } from 'tap';
import { createFetchJson } from '../../../../src/server/admin/trust/fetch-json.js';
import { createIssuerKeys } from '../../../../src/server/admin/trust/issuer-keys.js';
import { ApiError } from '../../../../src/server/core/errors.js';
import { type Issuer, startIssuer } from '../../../support/identities/issuer.js';

async function open(t: Test) {
  const issuer = await startIssuer(t);
  let nowMs = 0;
  const lines: string[] = [];
  const keys = createIssuerKeys({
    fetchOf: () => createFetchJson({ allowInsecure: true }),
    log: { warn: (fields: { err: Error }) => void lines.push(String(fields.err.message)) } as never,
    monotonicMs: () => nowMs,
  });
  const find = async (of: Issuer = issuer, key = of.keys[0]) => {
    const token = await of.sign({}, {}, key);
    const [header = '', payload = '', signature = ''] = token.split('.');
    await keys.of(of.url)(decodeProtectedHeader(token) as never, { protected: header, payload, signature });
  };
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { issuer, find, pass, lines, fails: (reason: RegExp) => failing(t, find, lines, reason) };
}

async function failing(t: Test, find: () => Promise<void>, lines: string[], reason: RegExp): Promise<void> {
  const error = await find().catch((thrown: unknown) => thrown);
  t.ok(error instanceof ApiError, String(error));
  const { message, headers } = error as ApiError;
  t.match(message, /^the keys of http:\/\/127.* cannot be read now/);
  t.same(headers, { 'retry-after': '5' });
  t.match(lines.at(-1), reason);
}

const UNKNOWN = errors.JWKSNoMatchingKey;

t.test('they are read once, and again after ten minutes', async (t) => {
  const { issuer, find, pass } = await open(t);
  await Promise.all([find(), find(), find()]);
  pass(9 * 60_000);
  await find();
  t.same(issuer.asked, { discovery: 1, keys: 1 });
  pass(61_000);
  await find();
  t.same(issuer.asked, { discovery: 2, keys: 2 });
});

t.test('a new key is found at once, an unknown one makes them be read once a minute', async (t) => {
  const { issuer, find, pass } = await open(t);
  await find();
  const rotated = await issuer.newKey();
  issuer.keys.push(rotated);
  await find(issuer, rotated);
  t.equal(issuer.asked.keys, 2);
  const stranger = await issuer.newKey();
  for (let n = 0; n < 5; n++) await t.rejects(find(issuer, stranger), UNKNOWN);
  t.equal(issuer.asked.keys, 2, 'the minute is not over');
  pass(60_000);
  for (let n = 0; n < 5; n++) await t.rejects(find(issuer, stranger), UNKNOWN);
  t.equal(issuer.asked.keys, 3);
});

t.test('a key that was withdrawn is trusted for ten minutes at most', async (t) => {
  const { issuer, find, pass } = await open(t);
  await find();
  const [withdrawn] = issuer.keys.splice(0, 1, await issuer.newKey());
  await find(issuer, withdrawn);
  pass(10 * 60_000);
  await t.rejects(find(issuer, withdrawn), UNKNOWN);
});

t.test(
  'while they cannot be read the error is temporary, and the issuer is asked every five seconds',
  async (t) => {
    const { issuer, find, pass, fails } = await open(t);
    issuer.answer = (_path, response) => response.writeHead(503).end();
    for (let n = 0; n < 3; n++) await fails(/answered 503/);
    t.equal(issuer.asked.discovery, 1);
    issuer.answer = undefined;
    pass(5_000);
    await find();
    t.equal(issuer.asked.discovery, 2);
  },
);

t.test('other answers of an issuer are no keys', async (t) => {
  const { issuer, fails, pass } = await open(t);
  const json = (value: unknown) => (_path: string, response: ServerResponse) =>
    void response.end(JSON.stringify(value));
  const known = { issuer: issuer.url, jwks_uri: `${issuer.url}/keys` };
  const withKeys = (text: string) => (path: string, response: ServerResponse) =>
    void response.end(path === '/keys' ? text : JSON.stringify(known));
  const table: [Issuer['answer'], RegExp][] = [
    [(_path, response) => response.writeHead(302, { location: '/keys' }).end(), /answered 302/],
    [json({ ...known, issuer: 'https://another.example.com' }), /names the issuer/],
    [json({ issuer: issuer.url }), /no jwks_uri/],
    [json({ ...known, jwks_uri: 'file:///etc/passwd' }), /no jwks_uri/],
    [json({ ...known, jwks_uri: 'https://127.0.0.1/keys' }), /no jwks_uri/],
    [json(null), /names the issuer/],
    [(_path, response) => void response.end('<html>'), /JSON/],
    [withKeys('{"keys": 7}'), /JSON Web Key Set malformed/],
    [withKeys('[]'), /JSON Web Key Set malformed/],
    [withKeys(`{"keys": [], "x": "${'x'.repeat(300_000)}"}`), /size/i],
    [(_path, response) => void response.destroy(), /./],
    // Never ends.
    [(_path, response) => void response.write('{'), /abort|timeout|Timeout/],
  ];
  for (const [answer, reason] of table) {
    issuer.answer = answer;
    await fails(reason);
    pass(5_000);
  }
});

t.test('only public hosts are called, unless the issuer is private', async (t) => {
  const { url } = await startIssuer(t);
  await t.rejects(createFetchJson({ allowInsecure: false })(`${url}/keys`), /must be https|not a public/);
  await t.rejects(
    createFetchJson({ allowInsecure: false, resolve: async () => ['10.0.0.1'] })('https://a.example/'),
    /not a public address/,
  );
  t.match(await createFetchJson(undefined)(`${url}/keys`), { keys: [{ kty: 'RSA' }] });
});
