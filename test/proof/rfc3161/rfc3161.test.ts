import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { TAG } from '../../../src/proof/asn1/der.js';
import { derElement, derInteger, derSequence, derSetOf } from '../../../src/proof/asn1/der-write.js';
import { toPem } from '../../../src/proof/asn1/pem.js';
import { concatBytes, fromHex, toHex, utf8 } from '../../../src/proof/bytes/encoding.js';
import { sha256 } from '../../../src/proof/bytes/primitives.js';
import { verifyTimestamp } from '../../../src/proof/rfc3161/verify-timestamp.js';
import { timestampRequest } from '../../../src/server/witnessing/clients/timestamp-request.js';
import {
  type CaChanges,
  codeOf,
  forgeCa,
  forgeResponse,
  GEN_TIME,
  POLICY,
  VALIDITY,
} from '../../support/certificates/timestamp-forge.js';
import { withByte, wrongTimestamps } from '../../support/certificates/wrong-timestamps.js';
import { makeOpensslTsa, type OpensslTsaOptions, openssl } from '../../support/witnesses/openssl-tsa.js';

const digest = sha256(utf8('checkpoint'));
const stamped = { digest };
const nonce = fromHex('00f1e2d3c4b5a697');

t.test('tokens of openssl verify with every algorithm', async (t) => {
  const cases: Record<string, Omit<OpensslTsaOptions, 'dir'>> = {
    'EC P-256 with SHA-256': { curve: 'P-256', signerDigest: 'sha256' },
    'EC P-384 with SHA-384, fractional seconds': { curve: 'P-384', signerDigest: 'sha384', precision: 6 },
    'RSA 2048 with SHA-512, ESSCertIDv2 by SHA-512': { signerDigest: 'sha512', essDigest: 'sha512' },
    'EC P-256 with SHA-512, ESSCertID by SHA-1': {
      curve: 'P-256',
      signerDigest: 'sha512',
      essDigest: 'sha1',
    },
  };
  for (const [name, options] of Object.entries(cases)) {
    await t.test(name, async (t) => {
      const tsa = await makeOpensslTsa({ dir: t.testdir(), ...options });
      const before = Date.now();
      const response = await tsa.reply(timestampRequest({ digest, nonce, certReq: true }));
      const expected = { response, stamped, nonce, chains: [tsa.chain], policyOid: tsa.policyOid };
      const verified = await verifyTimestamp(expected);
      t.ok(verified.genTime.getTime() >= before - 1000 && verified.genTime.getTime() <= Date.now());
      t.equal(verified.subject, 'CN=Foreign tsa,O=Foreign\\, Inc.,C=DE');
      t.equal(verified.policyOid, tsa.policyOid);
      t.equal(verified.serial, '01');
      t.equal(await codeOf({ ...expected, stamped: { digest: sha256(utf8('other')) } }), 'imprint_mismatch');
      t.equal(await codeOf({ ...expected, policyOid: tsa.otherPolicyOid }), 'policy_mismatch');
      const other = forgeCa();
      t.equal(await codeOf({ ...expected, chains: [other.chain] }), 'signer_untrusted');
      t.equal(await codeOf({ ...expected, chains: [other.chain, tsa.chain] }), 'verified');
      const withoutCertificate = await tsa.reply(timestampRequest({ digest, nonce, certReq: false }));
      t.equal(await codeOf({ ...expected, response: withoutCertificate }), 'verified');
      t.equal(
        await codeOf({ ...expected, response: withoutCertificate, chains: [other.chain] }),
        'signer_missing',
      );
    });
  }
});

t.test('a rejection by openssl has its reason', async (t) => {
  const tsa = await makeOpensslTsa({ dir: t.testdir(), curve: 'P-256', signerDigest: 'sha256' });
  const response = await tsa.reply(timestampRequest({ digest, nonce, certReq: true, policyOid: '1.2.3.4' }));
  await t.rejects(verifyTimestamp({ response, stamped: { digest }, nonce, chains: [tsa.chain] }), {
    code: 'not_granted',
    message: /^the authority answered with status 2, unacceptedPolicy, Requested policy is not supported/,
  });
});

t.test('the chain is judged at genTime, not now', async (t) => {
  const ca = forgeCa();
  const response = forgeResponse(ca, { digest });
  const verified = await verifyTimestamp({ response, stamped: { digest }, chains: [ca.chain] });
  t.ok(VALIDITY.notAfter.getTime() < Date.now(), 'the chain has expired by now');
  t.same(verified, {
    genTime: GEN_TIME,
    latest: new Date(GEN_TIME.getTime() + 1000),
    serial: '010203',
    policyOid: POLICY,
    subject: 'CN=Stamps,O=Attestation service',
  });

  const validNow = {
    notBefore: new Date('2025-01-01T00:00:00Z'),
    notAfter: new Date('2100-01-01T00:00:00Z'),
  };
  const late: CaChanges[] = [{ leaf: validNow }, { intermediate: validNow }, { root: validNow }];
  for (const changes of late) {
    const renewed = forgeCa(changes);
    const stamp = forgeResponse(renewed, { digest });
    const code = await codeOf({ response: stamp, stamped, chains: [renewed.chain] });
    t.equal(code, 'chain_expired', `only the ${Object.keys(changes)} was not yet valid`);
  }
  const times: [string, string][] = [
    ['20240229120000Z', 'verified'],
    ['20240229115959.999Z', 'chain_expired'],
    ['20240302120000Z', 'verified'],
    ['20240302120000.001Z', 'chain_expired'],
  ];
  for (const [text, code] of times) {
    const stamp = forgeResponse(ca, { digest, genTime: derElement(0x18, utf8(text)) });
    t.equal(await codeOf({ response: stamp, stamped, chains: [ca.chain] }), code, text);
  }
});

t.test('a stamp proves its genTime and the accuracy it states, or one unit of the last digit', async (t) => {
  const ca = forgeCa();
  const integer = (tag: number, ...octets: number[]) => derElement(tag, Uint8Array.from(octets));
  const [seconds, millis, micros] = [0x02, 0x80, 0x81];
  const accuracy = (...members: Uint8Array[]) => derSequence(...members);
  const cases: [genTime: string, accuracy: Uint8Array | undefined, latest: string][] = [
    ['20240301120000Z', undefined, '12:00:01.000'],
    ['20240301120000.5Z', undefined, '12:00:00.600'],
    ['20240301120000.12Z', undefined, '12:00:00.130'],
    ['20240301120000.999Z', undefined, '12:00:01.000'],
    ['20240301120000.120Z', undefined, '12:00:00.121'],
    ['20240301120000.1234Z', undefined, '12:00:00.124'],
    ['20240301120000.1239Z', undefined, '12:00:00.124'],
    ['20240301120000.123999999Z', undefined, '12:00:00.124'],
    ['20240301120000Z', accuracy(integer(seconds, 1)), '12:00:01.000'],
    ['20240301120000Z', accuracy(integer(seconds, 60)), '12:01:00.000'],
    ['20240301120000Z', accuracy(integer(seconds, 0x0e, 0x10)), '13:00:00.000'],
    ['20240301120000Z', accuracy(integer(millis, 0x01, 0xf4)), '12:00:00.500'],
    ['20240301120000Z', accuracy(integer(micros, 100)), '12:00:00.001'],
    [
      '20240301120000.9999Z',
      accuracy(integer(seconds, 1), integer(millis, 0x01, 0xf4), integer(micros, 101)),
      '12:00:02.501',
    ],
    ['20240301120000Z', accuracy(), '12:00:01.000'],
    ['20240301120000Z', accuracy(integer(seconds, 0)), '12:00:01.000'],
  ];
  for (const [genTime, stated, latest] of cases) {
    const forgery = { digest, genTime: derElement(0x18, utf8(genTime)), ...(stated && { accuracy: stated }) };
    const response = forgeResponse(ca, forgery);
    const verified = await verifyTimestamp({ response, stamped: { digest }, chains: [ca.chain] });
    t.equal(verified.latest.toISOString(), `2024-03-01T${latest}Z`, `${genTime} ${stated}`);
  }
  const malformed = [
    accuracy(integer(seconds, 0xff)),
    accuracy(integer(seconds, 1, 0, 0, 0, 0)),
    accuracy(integer(millis, 0x03, 0xe8)),
    accuracy(integer(micros, 1), integer(millis, 1)),
    accuracy(integer(0x82, 1)),
  ];
  for (const stated of malformed) {
    const response = forgeResponse(ca, { digest, accuracy: stated });
    t.equal(await codeOf({ response, stamped, chains: [ca.chain] }), 'malformed', `${stated}`);
  }
});

t.test('a nonce is compared as a number', async (t) => {
  const ca = forgeCa();
  const response = forgeResponse(ca, { digest, nonce });
  const withNonce = (nonce: Uint8Array, answer = response) =>
    codeOf({ response: answer, stamped, nonce, chains: [ca.chain] });
  t.equal(await withNonce(nonce), 'verified');
  t.equal(await withNonce(concatBytes(Uint8Array.of(0, 0), nonce)), 'verified');
  t.equal(await withNonce(nonce.subarray(1)), 'verified');
  t.equal(await withNonce(nonce.subarray(2)), 'nonce_mismatch');
  t.equal(await withNonce(concatBytes(nonce, Uint8Array.of(0))), 'nonce_mismatch');
  t.equal(await withNonce(new Uint8Array(8)), 'nonce_mismatch');
  t.equal(await withNonce(new Uint8Array()), 'nonce_mismatch');
  t.equal(await withNonce(nonce, forgeResponse(ca, { digest })), 'nonce_missing');
  const zero = forgeResponse(ca, { digest, nonce: Uint8Array.of(0) });
  t.equal(await withNonce(new Uint8Array(8), zero), 'verified');
  t.equal(
    await codeOf({ response, stamped, chains: [ca.chain] }),
    'verified',
    'not looked at unless it is given',
  );
});

t.test('a serial number may be any integer of up to 32 octets', async (t) => {
  const ca = forgeCa();
  const dir = t.testdir();
  const [, middle = new Uint8Array(), root = new Uint8Array()] = ca.chain;
  await writeFile(join(dir, 'chain.pem'), [middle, root].map((der) => toPem('CERTIFICATE', der)).join(''));
  const cases: [name: string, hex: string, serial: string][] = [
    ['zero', '00', '00'],
    ['one octet', '7f', '7f'],
    ['negative', '9122', '-6ede'],
    ['minus one', 'ff', '-01'],
    ['160 bits', `7f${'f1'.repeat(19)}`, `7f${'f1'.repeat(19)}`],
    ['160 bits, negative', `80${'00'.repeat(19)}`, `-80${'00'.repeat(19)}`],
    ['256 bits', `00${'ff'.repeat(32)}`, 'ff'.repeat(32)],
  ];
  for (const [name, hex, serial] of cases) {
    const response = forgeResponse(ca, { digest, serial: derElement(TAG.integer, fromHex(hex)) });
    t.equal((await verifyTimestamp({ response, stamped, chains: [ca.chain] })).serial, serial, name);
    await writeFile(join(dir, 'answer.tsr'), response);
    const at = String(GEN_TIME.getTime() / 1000);
    const judged = ['-digest', toHex(digest), '-in', 'answer.tsr', '-CAfile', 'chain.pem', '-attime', at];
    t.match(await openssl(dir, 'ts', '-verify', ...judged), /Verification: OK/, `${name}, as openssl judges`);
  }
  for (const [name, hex] of [
    ['empty', ''],
    ['padded', '0001'],
    ['padded, negative', 'ff91'],
    ['too long', '01'.repeat(34)],
  ] as const) {
    const response = forgeResponse(ca, { digest, serial: derElement(TAG.integer, fromHex(hex)) });
    t.equal(await codeOf({ response, stamped, chains: [ca.chain] }), 'malformed', name);
  }
});

t.test('a negative nonce is that of no request', async (t) => {
  const ca = forgeCa();
  const negative = derElement(TAG.integer, nonce.subarray(1));
  const response = forgeResponse(ca, { digest, nonceInteger: negative });
  t.equal(await codeOf({ response, stamped, chains: [ca.chain] }), 'verified', 'nobody asked for one');
  t.equal(await codeOf({ response, stamped, nonce, chains: [ca.chain] }), 'nonce_mismatch');
});

t.test('each wrong response is rejected with its own code', async (t) => {
  const ca = forgeCa();
  const [leaf = new Uint8Array(), middle = new Uint8Array(), root = new Uint8Array()] = ca.chain;
  for (const [name, code, forgery] of wrongTimestamps(ca, digest)) {
    // With a chain that starts at the intermediate too, it takes the ESSCertID to tell the two certificates apart.
    const chains = [
      [leaf, middle, root],
      [middle, root],
    ];
    const response = forgeResponse(ca, { digest, ...forgery });
    t.equal(await codeOf({ response, stamped, policyOid: POLICY, chains }), code, name);
  }
});

t.test('a response that is not DER is malformed', async (t) => {
  const ca = forgeCa();
  const response = forgeResponse(ca, { digest });
  const chains = [ca.chain];
  for (let length = 0; length < response.length; length += 16) {
    t.equal(
      await codeOf({ response: response.subarray(0, length), stamped, chains }),
      'malformed',
      `cut to ${length}`,
    );
  }
  const indefinite = concatBytes(Uint8Array.of(0x30, 0x80), response.subarray(4), Uint8Array.of(0, 0));
  const nested = Array.from({ length: 40 }).reduce<Uint8Array>((inner) => derSequence(inner), derSequence());
  const cases: Record<string, Uint8Array> = {
    'bytes after it': concatBytes(response, Uint8Array.of(0)),
    'indefinite length': indefinite,
    'indefinite octet string': concatBytes(fromHex('30802480'), fromHex('040100'), new Uint8Array(4)),
    'length of 4 GiB': fromHex('3084ffffffff'),
    'length of 126 octets': concatBytes(fromHex('30fe'), new Uint8Array(200).fill(0xff)),
    'length not minimal': concatBytes(fromHex('30820002'), fromHex('0500')),
    'short length in long form': concatBytes(fromHex('308102'), fromHex('0500')),
    'nested deeply': nested,
    'many elements': derSequence(...Array.from({ length: 9000 }, () => fromHex('0500'))),
    'tag of several octets': fromHex('3f8101020500'),
    'no token': derSequence(derSequence(derInteger(0))),
    'a status of many octets': derSequence(derSequence(derInteger(randomBytes(100)))),
    'no status': derSequence(derSequence()),
    'a set': derSetOf(derInteger(0)),
    text: utf8('<html>not found</html>'),
  };
  for (const [name, bytes] of Object.entries(cases)) {
    t.equal(await codeOf({ response: bytes, stamped, chains }), 'malformed', name);
  }
  for (let round = 0; round < 200; round += 1) {
    const garbage = randomBytes(1 + round * 3);
    if (round % 2 === 0) garbage[0] = 0x30;
    t.equal(await codeOf({ response: garbage, stamped, chains }), 'malformed');
  }
  const padded = concatBytes(response, new Uint8Array(65_536));
  t.equal(await codeOf({ response: padded, stamped, chains }), 'too_large');
});

t.test('a response with any bit flipped does not verify', async (t) => {
  const ca = forgeCa();
  const response = forgeResponse(ca, { digest, nonce });
  const expected = { stamped, nonce, chains: [ca.chain], policyOid: POLICY };
  t.equal(await codeOf({ response, ...expected }), 'verified');
  const accepted: string[] = [];
  for (let offset = 0; offset < response.length; offset += 1) {
    for (const bit of [offset % 8, (offset + 5) % 8]) {
      const flipped = withByte(response, offset, (response[offset] ?? 0) ^ (1 << bit));
      if ((await codeOf({ response: flipped, ...expected })) === 'verified')
        accepted.push(`${offset}.${bit}`);
    }
  }
  t.same(accepted, []);
});
