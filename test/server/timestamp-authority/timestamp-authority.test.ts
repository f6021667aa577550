import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { contextTag, parseDer } from '../../../src/proof/asn1/der.js';
import { membersOf, unsignedInteger } from '../../../src/proof/asn1/der-read.js';
import {
  derElement,
  derInteger,
  derObjectIdentifier,
  derOctetString,
  derSequence,
} from '../../../src/proof/asn1/der-write.js';
import { concatBytes, fromHex, toHex, utf8 } from '../../../src/proof/bytes/encoding.js';
import { sha256 } from '../../../src/proof/bytes/primitives.js';
import { verifyTimestamp } from '../../../src/proof/rfc3161/verify-timestamp.js';
import { loadAuthorityKeys } from '../../../src/server/timestamp-authority/authority-file.js';
import { parseTimestampRequest } from '../../../src/server/timestamp-authority/request.js';
import { grantTimestamp } from '../../../src/server/timestamp-authority/response.js';
import {
  EMBEDDED_POLICY_OID,
  openTimestampAuthority,
} from '../../../src/server/timestamp-authority/timestamp-authority.js';
import { timestampRequest } from '../../../src/server/witnessing/clients/timestamp-request.js';
import { derImprint } from '../../support/certificates/timestamp-forge.js';
import { openssl } from '../../support/witnesses/openssl-tsa.js';

const NOW = new Date('2026-05-04T03:02:01.987Z');
const SHA256 = '2.16.840.1.101.3.4.2.1';
const digest = sha256(utf8('checkpoint'));
const nonce = fromHex('80000000000000000000000000000001');

/** An authority in a folder of the test's own, and openssl beside it with the chain in files. */
async function open(t: Test) {
  const dir = t.testdir();
  const deps = { dir: join(dir, 'authority'), clock: () => NOW, randomBytes };
  const authority = await openTimestampAuthority(deps);
  const [leaf = '', root = ''] = authority.certChainPem;
  await writeFile(join(dir, 'tsa.pem'), leaf);
  await writeFile(join(dir, 'root.pem'), root);
  await writeFile(join(dir, 'data'), 'checkpoint');
  return { dir, deps, authority, openssl: (...args: string[]) => openssl(dir, ...args) };
}

t.test('openssl makes a request and accepts the stamp', async (t) => {
  const { dir, authority, openssl } = await open(t);
  for (const algorithm of ['-sha256', '-sha384', '-sha512']) {
    await openssl('ts', '-query', '-data', 'data', algorithm, '-cert', '-out', 'query');
    await writeFile(join(dir, 'reply'), await authority.respond(await readFile(join(dir, 'query'))));
    const at = ['-attime', String(Math.floor(NOW.getTime() / 1000))];
    const byQuery = await openssl(
      'ts',
      '-verify',
      '-queryfile',
      'query',
      '-in',
      'reply',
      '-CAfile',
      'root.pem',
      ...at,
    );
    t.match(byQuery, /Verification: OK/, algorithm);
    const byData = await openssl(
      'ts',
      '-verify',
      '-data',
      'data',
      '-in',
      'reply',
      '-CAfile',
      'root.pem',
      ...at,
    );
    t.match(byData, /Verification: OK/, algorithm);
  }
  const text = await openssl('ts', '-reply', '-in', 'reply', '-text');
  t.match(text, /Status: Granted/);
  t.match(text, /Time stamp: May {2}4 03:02:01 2026 GMT/, 'whole seconds');
  t.match(text, `Policy OID: ${EMBEDDED_POLICY_OID}`);
  t.match(text, /Accuracy: 0x01 seconds, unspecified millis, unspecified micros/, 'of which it says so');
  t.match(text, /Ordering: no/);
});

t.test('a stamp without certificate verifies with the certificate beside it', async (t) => {
  const { dir, authority, openssl } = await open(t);
  await openssl('ts', '-query', '-data', 'data', '-sha256', '-no_nonce', '-out', 'query');
  const reply = await authority.respond(await readFile(join(dir, 'query')));
  await writeFile(join(dir, 'reply'), reply);
  const verify = ['ts', '-verify', '-data', 'data', '-in', 'reply', '-CAfile', 'root.pem'];
  t.match(await openssl(...verify, '-untrusted', 'tsa.pem'), /Verification: OK/);
  await t.rejects(openssl(...verify), 'the certificate is not inside');
});

t.test('our own verifier accepts the stamp', async (t) => {
  const { authority } = await open(t);
  const response = await authority.respond(
    timestampRequest({ digest, nonce, certReq: true, policyOid: authority.policyOid }),
  );
  const chains = [authority.certChain];
  const verified = await verifyTimestamp({
    response,
    stamped: { digest },
    nonce,
    chains,
    policyOid: authority.policyOid,
  });
  t.equal(verified.genTime.toISOString(), '2026-05-04T03:02:01.000Z');
  t.equal(verified.latest.toISOString(), '2026-05-04T03:02:02.000Z');
  t.ok(verified.latest > NOW, 'the clock said no more than is proven');
  t.match(verified.serial, /^[4-7][0-9a-f]{31}$/, 'a random serial number of 127 bits');
  t.match(verified.subject, /^CN=Embedded time-stamping authority [0-9a-f]{8},O=/);
  const again = await authority.respond(timestampRequest({ digest, nonce, certReq: true }));
  t.not(
    (await verifyTimestamp({ response: again, stamped: { digest }, nonce, chains })).serial,
    verified.serial,
  );
});

t.test('the policy has arcs that programs in Go read, and stamps under a former policy verify', async (t) => {
  const { authority, deps } = await open(t);
  const arcs = authority.policyOid.split('.').map(BigInt);
  t.ok(
    arcs.every((arc) => arc < 2n ** 31n),
    authority.policyOid,
  );
  const { privateKey, chain } = await loadAuthorityKeys(deps);
  const policyOid = '2.25.277798158585258549510730547708933657753';
  const query = parseTimestampRequest(timestampRequest({ digest, nonce, certReq: true }), policyOid);
  const signer = { privateKey, certificate: chain[0], policyOid };
  const former = grantTimestamp(signer, query, { genTime: NOW, serial: Uint8Array.of(1) });
  const verified = await verifyTimestamp({
    response: former,
    stamped: { digest },
    nonce,
    chains: [authority.certChain],
  });
  t.equal(verified.policyOid, policyOid);
  const reopened = await openTimestampAuthority(deps);
  t.equal(reopened.policyOid, authority.policyOid, 'the folder of keys says nothing of the policy');
});

t.test('the certificates have the extensions of RFC 3161 and RFC 5280', async (t) => {
  const { openssl } = await open(t);
  t.match(
    await openssl('verify', '-purpose', 'timestampsign', '-x509_strict', '-CAfile', 'root.pem', 'tsa.pem'),
    'OK',
  );
  const leaf = await openssl('x509', '-in', 'tsa.pem', '-noout', '-text');
  t.match(leaf, /Extended Key Usage: critical\s+Time Stamping\n/);
  t.match(leaf, /Key Usage: critical\s+Digital Signature\n/);
  t.match(leaf, /Basic Constraints: critical\s+CA:FALSE/);
  const identifier = /Authority Key Identifier: \s+([0-9A-F:]+)/.exec(leaf)?.[1];
  const root = await openssl('x509', '-in', 'root.pem', '-noout', '-text');
  t.match(root, `Subject Key Identifier: \n                ${identifier}`);
  t.match(root, /Basic Constraints: critical\s+CA:TRUE, pathlen:0/);
  t.match(root, /Not Before: May {2}3 03:02:01 2026 GMT/);
  t.match(root, /Not After : Apr 26 03:02:01 2056 GMT/, 'in GeneralizedTime, past 2049');
});

t.test('keys are made once, for their owner only, and loaded from then on', async (t) => {
  const { deps, authority } = await open(t);
  t.equal((await stat(deps.dir)).mode & 0o777, 0o700);
  const files = await readdir(deps.dir);
  t.equal(files.length, 1);
  const path = join(deps.dir, files[0] ?? '');
  t.equal((await stat(path)).mode & 0o777, 0o600);
  t.match(await readFile(path, 'utf8'), /^-----BEGIN PRIVATE KEY-----\n/);
  t.equal((await readFile(path, 'utf8')).match(/PRIVATE KEY/g)?.length, 2, "the root's key is not kept");

  const reopened = await openTimestampAuthority(deps);
  t.same(reopened.certChainPem, authority.certChainPem);
  const response = await reopened.respond(timestampRequest({ digest, nonce, certReq: true }));
  await t.resolves(verifyTimestamp({ response, stamped: { digest }, nonce, chains: [authority.certChain] }));
  const other = await openTimestampAuthority({ ...deps, dir: join(deps.dir, 'other') });
  t.notSame(other.certChainPem, authority.certChainPem);
});

t.test('files left by a crash during the writing of keys are ignored', async (t) => {
  const dir = t.testdir();
  await mkdir(join(dir, 'authority'), { mode: 0o700 });
  const leftover = join(dir, 'authority', 'timestamp-authority.pem.0123456789ab.tmp');
  await writeFile(leftover, '-----BEGIN PRIV');
  const deps = { dir: join(dir, 'authority'), clock: () => NOW, randomBytes };
  const authority = await openTimestampAuthority(deps);
  t.same((await openTimestampAuthority(deps)).certChainPem, authority.certChainPem);
});

t.test('a damaged file is reported, not replaced', async (t) => {
  const { deps, dir } = await open(t);
  const path = join(deps.dir, 'timestamp-authority.pem');
  const whole = await readFile(path, 'utf8');
  const other = await openTimestampAuthority({ ...deps, dir: join(dir, 'other') });
  const foreign = await readFile(join(dir, 'other', 'timestamp-authority.pem'), 'utf8');
  const [key = '', leaf = '', root = ''] = whole.split(/(?<=-----END [A-Z ]+-----\n)/);
  const damaged = {
    empty: '',
    'cut in half': whole.slice(0, whole.length / 2),
    'without a key': leaf + root,
    'without the root': key + leaf,
    'with a key of another certificate': foreign.slice(0, key.length) + leaf + root,
    'with a foreign root': key + leaf + other.certChainPem[1],
    'with a certificate too many': whole + root,
  };
  for (const [name, text] of Object.entries(damaged)) {
    await writeFile(path, text);
    await t.rejects(openTimestampAuthority(deps), { message: /timestamp-authority\.pem is damaged/ }, name);
    t.equal(await readFile(path, 'utf8'), text);
  }
});

t.test('a rejected request gets a rejection with its reason', async (t) => {
  const { dir, authority, openssl } = await open(t);
  const request = (...members: Uint8Array[]) => derSequence(derInteger(1), ...members);
  const imprint = derImprint(SHA256, digest);
  const extension = derSequence(derObjectIdentifier('1.2.3'), derOctetString());
  const oddParameters = derSequence(
    derSequence(derObjectIdentifier(SHA256), fromHex('050100')),
    derOctetString(digest),
  );
  const cases: [string, RegExp, Uint8Array][] = [
    ['empty', /wrong format/, new Uint8Array()],
    ['random', /wrong format/, Uint8Array.from(randomBytes(64)).with(0, 0x30)],
    ['truncated', /wrong format/, request(imprint).subarray(0, 30)],
    ['trailing bytes', /wrong format/, concatBytes(request(imprint), Uint8Array.of(0))],
    ['too large', /wrong format/, request(imprint, derInteger(randomBytes(5000)))],
    ['huge length', /wrong format/, fromHex('3084ffffffff')],
    ['indefinite length', /wrong format/, concatBytes(fromHex('3080'), fromHex('0201010000'))],
    ['unknown member', /wrong format/, request(imprint, derOctetString())],
    ['digest too short', /wrong format/, request(derImprint(SHA256, digest.subarray(1)))],
    ['digest too long', /wrong format/, request(derImprint(SHA256, new Uint8Array(64)))],
    ['odd parameters', /wrong format/, request(oddParameters)],
    [
      'nonce too long',
      /wrong format/,
      request(imprint, derInteger(Uint8Array.from(randomBytes(33)).with(0, 1))),
    ],
    ['negative nonce', /wrong format/, request(imprint, fromHex('0201ff'))],
    ['version 2', /transaction not permitted or supported/, derSequence(derInteger(2), imprint)],
    [
      'SHA-1',
      /unrecognized or unsupported algorithm/,
      request(derImprint('1.3.14.3.2.26', digest.subarray(0, 20))),
    ],
    ['another policy', /policy.* not supported/, request(imprint, derObjectIdentifier('1.2.3.4'))],
    [
      'an extension',
      /extension.* not supported/,
      request(imprint, derElement(contextTag(0, true), extension)),
    ],
  ];
  for (const [name, reason, der] of cases) {
    const response = await authority.respond(der);
    await writeFile(join(dir, 'reply'), response);
    const text = await openssl('ts', '-reply', '-in', 'reply', '-text');
    t.match(text, /Status: Rejected/, name);
    t.match(text, new RegExp(`Failure info: .*${reason.source}`), name);
    t.notMatch(text, /Time stamp/, name);
    await t.rejects(verifyTimestamp({ response, stamped: { digest }, chains: [authority.certChain] }), {
      code: 'not_granted',
    });
  }
  const digests: [string, string][] = [
    ['sha384', '2.16.840.1.101.3.4.2.2'],
    ['sha512', '2.16.840.1.101.3.4.2.3'],
  ];
  for (const [algorithm, oid] of digests) {
    const response = await authority.respond(request(derImprint(oid, createHash(algorithm).digest())));
    await t.rejects(verifyTimestamp({ response, stamped: { digest }, chains: [authority.certChain] }), {
      code: 'imprint_algorithm',
    });
  }
});

t.test('random requests never break the authority', async (t) => {
  const { authority } = await open(t);
  const good = timestampRequest({ digest, nonce, certReq: true });
  for (let offset = 0; offset < good.length; offset += 1) {
    const flipped = Uint8Array.from(good).with(offset, (good[offset] ?? 0) ^ (1 << (offset % 8)));
    const response = await authority.respond(flipped);
    const [status] = parseDer(response, 65_536).children;
    if (status === undefined) throw new Error('a response has a status');
    const code = toHex(unsignedInteger(membersOf(status, 'status').takeAny(), 'status'));
    t.ok(['00', '02'].includes(code), `bit of byte ${offset}: status ${code}`);
  }
});
