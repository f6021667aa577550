import { createHash, randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { derInteger, derSequence, derTrue } from '../../../../src/proof/asn1/der-write.js';
import { fromHex } from '../../../../src/proof/bytes/encoding.js';
import { SHA256_OID } from '../../../../src/proof/rfc3161/algorithm.js';
import { parseResponse } from '../../../../src/proof/rfc3161/token.js';
import { verifyTimestamp } from '../../../../src/proof/rfc3161/verify-timestamp.js';
import { openTimestampAuthority } from '../../../../src/server/timestamp-authority/timestamp-authority.js';
import {
  httpTimestampTransport,
  requestTimestamp,
  rfc3161Witness,
} from '../../../../src/server/witnessing/clients/rfc3161.js';
import { timestampRequest } from '../../../../src/server/witnessing/clients/timestamp-request.js';
import { derImprint } from '../../../support/certificates/timestamp-forge.js';
import { makeOpensslTsa, openssl, serveTsa } from '../../../support/witnesses/openssl-tsa.js';
import { body, checkpoint, dispatcherOf, never, transport } from './stamping.js';

const digest = createHash('sha256').update(body).digest();

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

t.test('an authority in this process is requested the same way', async (t) => {
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
