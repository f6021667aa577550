import { createHash, randomBytes } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import type { RequestListener, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { Agent } from 'undici';
import { derInteger, derSequence, derTrue } from '../../../src/proof/asn1/der-write.js';
import { fromHex, utf8 } from '../../../src/proof/bytes/encoding.js';
import { SHA256_OID } from '../../../src/proof/rfc3161/algorithm.js';
import { parseResponse } from '../../../src/proof/rfc3161/token.js';
import { verifyTimestamp } from '../../../src/proof/rfc3161/verify-timestamp.js';
import { openTimestampAuthority } from '../../../src/server/timestamp-authority/timestamp-authority.js';
import { WitnessRequestError } from '../../../src/server/witness/bounded-request.js';
import {
  httpTimestampTransport,
  requestTimestamp,
  rfc3161Witness,
} from '../../../src/server/witness/rfc3161.js';
import { timestampRequest } from '../../../src/server/witness/timestamp-request.js';
import { derImprint } from '../../support/certificates/timestamp-forge.js';
import { makeOpensslTsa, openssl, serve, serveTsa } from '../../support/witnesses/openssl-tsa.js';

const body = utf8('live.example.org\n7\nq83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=\n');
const checkpoint = {
  origin: 'live.example.org',
  treeSize: 7,
  rootHash: 'abcdef1234567890abcdef1234567890abcdef1234567890abcdef1234567890',
  body,
  note: 'not looked at',
  coveredSize: 0,
  proveConsistency: () => Promise.reject(new Error('not looked at')),
};
const digest = createHash('sha256').update(body).digest();
const never = new AbortController().signal;
const REPLY = { 'content-type': 'application/timestamp-reply' };

/** A dispatcher that goes with the test: open connections do not outlive it. */
function dispatcherOf(t: Test): Agent {
  const dispatcher = new Agent();
  t.teardown(() => dispatcher.destroy());
  return dispatcher;
}

function transport(t: Test, url: string, limits: { timeoutMs?: number; maxBytes?: number } = {}) {
  return httpTimestampTransport(
    { dispatcher: dispatcherOf(t) },
    { url, timeoutMs: 10_000, maxBytes: 65_536, ...limits },
  );
}

async function embeddedAuthority(dir: string) {
  return openTimestampAuthority({ dir, clock: () => new Date(), randomBytes });
}

t.test('a foreign authority over HTTP vouches for the checkpoint body', async (t) => {
  const dir = t.testdir();
  const tsa = await makeOpensslTsa({ dir, curve: 'P-384', signerDigest: 'sha384' });
  const server = await serveTsa(tsa);
  t.teardown(server.close);
  for (const policyOid of [undefined, tsa.policyOid, tsa.otherPolicyOid]) {
    const deps = { send: transport(t, server.url), randomBytes };
    const witness = rfc3161Witness(deps, { name: 'foreign', chains: [tsa.chain], policyOid });
    t.match(witness, { name: 'foreign', kind: 'rfc3161' });
    const answer = await witness.ask(checkpoint, never);
    if (answer.type !== 'landed') throw new Error('an authority answers at once');
    const { evidence, detail } = answer;
    t.match(detail, {
      policy_oid: policyOid ?? tsa.policyOid,
      serial: /^[0-9a-f]+$/,
      nonce: /^[0-9a-f]{32}$/,
    });
    t.match(detail.gen_time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    const nonce = fromHex(String(detail.nonce));
    await t.resolves(
      verifyTimestamp({ response: evidence, stamped: { digest }, nonce, chains: [tsa.chain] }),
    );
    await writeFile(join(dir, 'reply'), evidence);
    await writeFile(join(dir, 'body'), body);
    const args = ['ts', '-verify', '-data', 'body', '-in', 'reply', '-CAfile', 'root.pem'];
    t.match(await openssl(dir, ...args, '-untrusted', 'intermediate.pem'), /Verification: OK/);
  }
});

t.test('a foreign authority stamps a longer digest, and is sent credentials', async (t) => {
  const tsa = await makeOpensslTsa({ dir: t.testdir(), curve: 'P-256', signerDigest: 'sha512' });
  const credentials: unknown[] = [];
  const server = await serveTsa(tsa, ({ headers }) => void credentials.push(headers.authorization));
  t.teardown(server.close);
  for (const [hash, length] of [
    ['SHA-384', 48],
    ['SHA-512', 64],
  ] as const) {
    const send = httpTimestampTransport(
      { dispatcher: dispatcherOf(t) },
      { url: server.url, headers: { authorization: 'Basic eA==' }, timeoutMs: 10_000, maxBytes: 65_536 },
    );
    const witness = rfc3161Witness({ send, randomBytes }, { name: 'foreign', hash, chains: [tsa.chain] });
    const answer = await witness.ask(checkpoint, never);
    if (answer.type !== 'landed') throw new Error('an authority answers at once');
    t.equal(parseResponse(answer.evidence).tstInfo.imprint.digest.length, length);
    const checked = { response: answer.evidence, chains: [tsa.chain] };
    await t.resolves(verifyTimestamp({ ...checked, stamped: { message: body } }));
    await t.rejects(verifyTimestamp({ ...checked, stamped: { message: digest } }), {
      code: 'imprint_mismatch',
    });
    await t.rejects(verifyTimestamp({ ...checked, stamped: { digest } }), { code: 'imprint_algorithm' });
  }
  t.same(credentials, ['Basic eA==', 'Basic eA==']);
});

t.test('an authority in this process is asked the same way', async (t) => {
  const authority = await embeddedAuthority(t.testdir());
  const trust = { chains: [authority.certChain], policyOid: authority.policyOid };
  const witness = rfc3161Witness({ send: authority.respond, randomBytes }, { name: 'embedded', ...trust });
  const [first, second] = [await witness.ask(checkpoint, never), await witness.ask(checkpoint, never)];
  t.equal(first.detail.policy_oid, authority.policyOid);
  t.not(first.detail.nonce, second.detail.nonce, 'each question has its own nonce');
});

t.test('openssl reads our request', async (t) => {
  const dir = t.testdir();
  const nonce = fromHex('00ff000000000001');
  await writeFile(
    join(dir, 'query'),
    timestampRequest({ digest, nonce, certReq: true, policyOid: '1.2.3.4' }),
  );
  const text = await openssl(dir, 'ts', '-query', '-in', 'query', '-text');
  t.match(text, /Version: 1\nHash Algorithm: sha256\n/);
  t.match(text, /Policy OID: 1\.2\.3\.4\nNonce: 0xFF000000000001\nCertificate required: yes\n/);
  await writeFile(join(dir, 'query'), timestampRequest({ digest, nonce, certReq: false }));
  t.match(
    await openssl(dir, 'ts', '-query', '-in', 'query', '-text'),
    /Policy OID: unspecified\nNonce: .*\nCertificate required: no\n/,
  );
  t.throws(() => timestampRequest({ digest: digest.subarray(1), nonce, certReq: true }), RangeError);
  t.throws(() => timestampRequest({ digest, nonce, certReq: true, policyOid: 'policy' }), RangeError);
});

t.test('a stamp that does not answer this question does not land', async (t) => {
  const authority = await embeddedAuthority(t.testdir());
  const stranger = await embeddedAuthority(join(t.testdirName, 'stranger'));
  const question = {
    message: body,
    nonce: randomBytes(16),
    chains: [authority.certChain],
    policyOid: authority.policyOid,
  };
  const earlier = await authority.respond(
    timestampRequest({ digest, nonce: randomBytes(16), certReq: true }),
  );
  const ask = (send: () => Promise<Uint8Array>, changes = {}) =>
    requestTimestamp({ send }, { ...question, ...changes }, never);
  await t.rejects(
    ask(async () => earlier),
    { code: 'nonce_mismatch' },
    'a replayed stamp',
  );
  const withoutNonce = derSequence(derInteger(1), derImprint(SHA256_OID, digest), derTrue());
  await t.rejects(
    ask(() => authority.respond(withoutNonce)),
    { code: 'nonce_missing' },
  );
  const request = timestampRequest({ ...question, digest, certReq: true });
  await t.rejects(
    ask(() => stranger.respond(request)),
    { code: 'signer_untrusted' },
  );
  await t.rejects(
    ask(() => authority.respond(request), { message: randomBytes(32) }),
    { code: 'imprint_mismatch' },
  );
  await t.rejects(
    ask(() => authority.respond(request), { policyOid: '1.2.3.4' }),
    { code: 'policy_mismatch' },
  );
  await t.rejects(
    ask(() => authority.respond(new Uint8Array())),
    { code: 'not_granted', message: /badDataFormat/ },
  );
  await t.resolves(ask(() => authority.respond(request)));
});

t.test('a server that misbehaves is given up with a short reason', async (t) => {
  const cases: [
    string,
    { code: string; message: RegExp },
    RequestListener,
    { timeoutMs?: number; maxBytes?: number }?,
  ][] = [
    [
      '500',
      { code: 'http_status', message: /^the authority answered with status 500$/ },
      (_, r) => r.writeHead(500, REPLY).end('x'),
    ],
    ['201', { code: 'http_status', message: /status 201/ }, (_, r) => r.writeHead(201, REPLY).end('x')],
    [
      'an HTML page',
      { code: 'content_type', message: /^the authority answered with text\/html, not a/ },
      (_, r) => r.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end('<html>'),
    ],
    [
      'no content type',
      { code: 'content_type', message: /no content type/ },
      (_, r) => r.writeHead(200).end('x'),
    ],
    [
      'an endless content type',
      { code: 'content_type', message: /^.{0,120}$/ },
      (_, r) => r.writeHead(200, { 'content-type': 'x'.repeat(4000) }).end('x'),
    ],
    [
      'an endless answer',
      { code: 'too_large', message: /^the answer has more than 65536 bytes$/ },
      (_, r) => pour(r.writeHead(200, REPLY)),
    ],
    ['an endless error', { code: 'too_large', message: /more than/ }, (_, r) => pour(r.writeHead(500))],
    [
      'one byte too many',
      { code: 'too_large', message: /more than 10 bytes/ },
      (_, r) => r.writeHead(200, REPLY).end('12345678901'),
      { maxBytes: 10 },
    ],
    [
      'no answer',
      { code: 'timeout', message: /^no whole answer within 50 ms$/ },
      () => undefined,
      { timeoutMs: 50 },
    ],
    [
      'half an answer',
      { code: 'timeout', message: /within 50 ms/ },
      (_, r) => r.writeHead(200, REPLY).write('half'),
      { timeoutMs: 50 },
    ],
    [
      'a cut connection',
      { code: 'network', message: /^127\.0\.0\.1:\d+ cannot be asked: UND_ERR_SOCKET$/ },
      (request) => request.socket.destroy(),
    ],
    [
      'a cut answer',
      { code: 'network', message: /UND_ERR_SOCKET|ECONNRESET/ },
      (_, r) => r.writeHead(200, { ...REPLY, 'content-length': 99 }).write('half', () => r.destroy()),
    ],
    ['garbage', { code: 'malformed', message: /./ }, (_, r) => r.writeHead(200, REPLY).end(randomBytes(500))],
    ['nothing', { code: 'malformed', message: /truncated/ }, (_, r) => r.writeHead(200, REPLY).end()],
  ];
  for (const [name, error, listener, limits] of cases) {
    const server = await serve(listener);
    t.teardown(server.close);
    const witness = rfc3161Witness(
      { send: transport(t, server.url, limits), randomBytes },
      { name: 'bad', chains: [] },
    );
    await t.rejects(witness.ask(checkpoint, never), error, name);
  }
});

t.test('a redirect is not followed', async (t) => {
  const asked: string[] = [];
  const target = await serve((request, response) => {
    asked.push(request.url ?? '');
    response.writeHead(200, REPLY).end();
  });
  t.teardown(target.close);
  for (const status of [301, 302, 303, 307, 308]) {
    const server = await serve((_, response) =>
      response.writeHead(status, { ...REPLY, location: target.url }).end(),
    );
    t.teardown(server.close);
    const send = transport(t, server.url);
    await t.rejects(send(utf8('request'), never), {
      code: 'http_status',
      message: new RegExp(`status ${status}`),
    });
  }
  t.same(asked, []);
});

t.test('a request that is aborted ends at once and closes its connection', async (t) => {
  const arrived = new EventEmitter();
  const server = await serve((request) => {
    arrived.emit('request', request.socket);
  });
  t.teardown(server.close);
  const controller = new AbortController();
  const request = once(arrived, 'request');
  const answer = transport(t, server.url)(utf8('request'), controller.signal);
  const [socket] = await request;
  const closed = once(socket, 'close');
  controller.abort();
  await t.rejects(answer, { code: 'aborted', message: 'the request was aborted' });
  await closed;
  const early = transport(t, server.url)(utf8('request'), AbortSignal.abort());
  await t.rejects(early, WitnessRequestError, 'aborted before it began');
});

t.test('an authority that cannot be reached is named without its credentials', async (t) => {
  const server = await serve(() => undefined);
  await server.close();
  const url = server.url.replace('http://', 'http://user:secret@');
  await t.rejects(transport(t, url)(utf8('request'), never), {
    code: 'network',
    message: /^127\.0\.0\.1:\d+ cannot be asked: ECONNREFUSED$/,
  });
  await t.rejects(transport(t, 'ftp://host/secret')(utf8('request'), never), {
    code: 'network',
    message: /^host cannot/,
  });
  await t.rejects(transport(t, 'no address')(utf8('request'), never), {
    code: 'network',
    message: /^the address cannot/,
  });
});

t.test('the request is what RFC 3161 says on the wire', async (t) => {
  const seen: { method?: string | undefined; type?: string | undefined; body?: Buffer } = {};
  const server = await serve(async (request, response) => {
    Object.assign(seen, {
      method: request.method,
      type: request.headers['content-type'],
      body: await buffer(request),
    });
    response.writeHead(200, { 'content-type': 'Application/Timestamp-Reply; charset=binary' }).end('reply');
  });
  t.teardown(server.close);
  const reply = await transport(t, server.url)(utf8('request'), never);
  t.equal(Buffer.from(reply).toString(), 'reply');
  t.match(seen, { method: 'POST', type: 'application/timestamp-query', body: Buffer.from('request') });
});

/** Writes until the other side hangs up. */
function pour(response: ServerResponse): void {
  const chunk = Buffer.alloc(16_384);
  const more = () => {
    while (!response.destroyed && response.write(chunk));
  };
  response.on('drain', more).on('error', () => undefined);
  more();
}
