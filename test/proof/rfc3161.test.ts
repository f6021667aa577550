import { generateKeyPairSync, randomBytes } from 'node:crypto';
import t from 'tap';
import { contextTag, parseDer } from '../../src/proof/der.js';
import {
  generalizedTime,
  objectIdentifier,
  smallInteger,
  unsignedInteger,
} from '../../src/proof/der-values.js';
import {
  derElement,
  derInteger,
  derObjectIdentifier,
  derOctetString,
  derSequence,
  derSetOf,
  derTrue,
  derUtf8String,
} from '../../src/proof/der-write.js';
import { concatBytes, fromHex, toHex, utf8 } from '../../src/proof/encoding.js';
import { FormatError } from '../../src/proof/format-error.js';
import { sha256 } from '../../src/proof/primitives.js';
import { TimestampError, type TimestampErrorCode } from '../../src/proof/rfc3161/error.js';
import { nameText } from '../../src/proof/rfc3161/name.js';
import { type TimestampExpectation, verifyTimestamp } from '../../src/proof/rfc3161.js';
import { timestampRequest } from '../../src/witness/timestamp-request.js';
import { makeOpensslTsa, type OpensslTsaOptions, openssl } from '../support/openssl-tsa.js';
import {
  ATTRIBUTES,
  bits,
  type CaChanges,
  caExtensions,
  derAttribute,
  derImprint,
  derIssuerSerial,
  derSid,
  essCertificate,
  extendedKeyUsage,
  type Forgery,
  forgeCa,
  forgeResponse,
  GEN_TIME,
  leafExtensions,
  POLICY,
  VALIDITY,
} from '../support/timestamp-forge.js';

const digest = sha256(utf8('checkpoint'));
const nonce = fromHex('00f1e2d3c4b5a697');
const TIME_STAMPING = '1.3.6.1.5.5.7.3.8';
const CODE_SIGNING = '1.3.6.1.5.5.7.3.3';

async function codeOf(expectation: TimestampExpectation): Promise<TimestampErrorCode | 'verified'> {
  try {
    await verifyTimestamp(expectation);
    return 'verified';
  } catch (error) {
    if (error instanceof TimestampError) return error.code;
    throw error;
  }
}

t.test('a token of openssl verifies, whatever its algorithms', async (t) => {
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
      const expected = { response, digest, nonce, chains: [tsa.chain], policyOid: tsa.policyOid };
      const verified = await verifyTimestamp(expected);
      t.ok(verified.genTime.getTime() >= before - 1000 && verified.genTime.getTime() <= Date.now());
      t.equal(verified.subject, 'CN=Foreign tsa,O=Foreign\\, Inc.,C=DE');
      t.equal(verified.policyOid, tsa.policyOid);
      t.match(await openssl(t.testdirName, 'version'), /OpenSSL/);
      t.equal(verified.serial, '01');
      t.equal(await codeOf({ ...expected, digest: sha256(utf8('other')) }), 'imprint_mismatch');
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

t.test("openssl's refusal says why", async (t) => {
  const tsa = await makeOpensslTsa({ dir: t.testdir(), curve: 'P-256', signerDigest: 'sha256' });
  const response = await tsa.reply(timestampRequest({ digest, nonce, certReq: true, policyOid: '1.2.3.4' }));
  await t.rejects(verifyTimestamp({ response, digest, nonce, chains: [tsa.chain] }), {
    code: 'not_granted',
    message: /^the authority answered with status 2, unacceptedPolicy, Requested policy is not supported/,
  });
});

t.test('the chain is judged at genTime, not now', async (t) => {
  const ca = forgeCa();
  const response = forgeResponse(ca, { digest });
  const verified = await verifyTimestamp({ response, digest, chains: [ca.chain] });
  t.ok(VALIDITY.notAfter.getTime() < Date.now(), 'the chain has expired by now');
  t.same(verified, {
    genTime: GEN_TIME,
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
    const code = await codeOf({ response: stamp, digest, chains: [renewed.chain] });
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
    t.equal(await codeOf({ response: stamp, digest, chains: [ca.chain] }), code, text);
  }
});

t.test('a nonce is compared as a number', async (t) => {
  const ca = forgeCa();
  const response = forgeResponse(ca, { digest, nonce });
  const withNonce = (nonce: Uint8Array, answer = response) =>
    codeOf({ response: answer, digest, nonce, chains: [ca.chain] });
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
    await codeOf({ response, digest, chains: [ca.chain] }),
    'verified',
    'not looked at unless it is given',
  );
});

t.test('each wrong response is refused with its own code', async (t) => {
  const ca = forgeCa();
  const stranger = forgeCa();
  const [leaf = new Uint8Array(), middle = new Uint8Array(), root = new Uint8Array()] = ca.chain;
  const without = (oid: string) => (usual: Uint8Array[]) =>
    usual.filter((attribute) => !toHex(attribute).includes(toHex(derObjectIdentifier(oid))));
  const replaced =
    (oid: string, ...values: Uint8Array[]) =>
    (usual: Uint8Array[]) => [...without(oid)(usual), derAttribute(oid, ...values)];
  const named = (value: Uint8Array) => replaced(ATTRIBUTES.signingCertificateV2, value);
  const repeated = extendedKeyUsage(true, TIME_STAMPING);
  const doubled = forgeCa({ leaf: { extensions: [repeated, repeated] } }).leaf;
  const { contentType, messageDigest, signingCertificate, signingCertificateV2 } = ATTRIBUTES;
  const criticalExtension = derSequence(derObjectIdentifier('1.2.3'), derTrue(), derOctetString());
  const plainExtension = derSequence(derObjectIdentifier('1.2.3'), derOctetString());
  const refused = (status: number) => derSequence(derInteger(status));
  const cases: [string, TimestampErrorCode | 'verified', Omit<Forgery, 'digest'>][] = [
    ['nothing is wrong', 'verified', {}],
    ['granted with modifications', 'not_granted', { status: refused(1) }],
    ['rejected, with a token all the same', 'not_granted', { status: refused(2) }],
    ['waiting', 'not_granted', { status: refused(3) }],
    ['granted with a reason for failure', 'malformed', { status: derSequence(derInteger(0), bits(0, 0x80)) }],
    ['not signed data', 'content_type', { contentType: '1.2.840.113549.1.7.1' }],
    ['not a TSTInfo inside', 'content_type', { eContentType: '1.2.840.113549.1.7.1' }],
    ['no signer', 'signer_count', { signers: () => [] }],
    ['two signers', 'signer_count', { signers: (usual) => [usual, usual] }],
    [
      'imprint by SHA-1',
      'imprint_algorithm',
      { imprint: derImprint('1.3.14.3.2.26', digest.subarray(0, 20)) },
    ],
    [
      'imprint by SHA-512 of 32 bytes',
      'imprint_algorithm',
      { imprint: derImprint('2.16.840.1.101.3.4.2.3', digest) },
    ],
    [
      'imprint cut short',
      'imprint_length',
      { imprint: derImprint('2.16.840.1.101.3.4.2.1', digest.subarray(0, 31)) },
    ],
    [
      'imprint of something else',
      'imprint_mismatch',
      { imprint: derImprint('2.16.840.1.101.3.4.2.1', sha256(digest)) },
    ],
    ['another policy', 'policy_mismatch', { policyOid: '1.2.3.4' }],
    ['an unknown critical extension', 'critical_extension', { tstExtensions: criticalExtension }],
    ['an unknown extension', 'verified', { tstExtensions: plainExtension }],
    ['no signed attributes', 'signed_attributes', { withoutAttributes: true }],
    ['no content type', 'signed_attributes', { attributes: without(contentType) }],
    ['no message digest', 'signed_attributes', { attributes: without(messageDigest) }],
    [
      'an attribute twice',
      'signed_attributes',
      { attributes: (usual) => [...usual, ...without(contentType)(usual)] },
    ],
    [
      'an attribute of two values',
      'signed_attributes',
      { attributes: replaced(contentType, derTrue(), derTrue()) },
    ],
    ['an attribute of no value', 'signed_attributes', { attributes: replaced(contentType) }],
    [
      'another content type',
      'content_type',
      { attributes: replaced(contentType, derObjectIdentifier('1.2.3')) },
    ],
    [
      'another message digest',
      'message_digest',
      { attributes: replaced(messageDigest, derOctetString(digest)) },
    ],
    ['altered TSTInfo', 'message_digest', { alterTstInfo: (bytes) => withByte(bytes, -2, 0x31) }],
    [
      'altered signature',
      'signature',
      { signature: (bytes) => withByte(bytes, -1, (bytes.at(-1) ?? 0) ^ 1) },
    ],
    ['a signature that is no DER', 'signature', { signature: () => new Uint8Array(64) }],
    ['an empty signature', 'signature', { signature: () => new Uint8Array() }],
    [
      'a signature with a long scalar',
      'signature',
      { signature: () => derSequence(derInteger(randomBytes(40)), derInteger(1)) },
    ],
    [
      'a signature with bytes after it',
      'signature',
      { signature: (bytes) => concatBytes(bytes, Uint8Array.of(0)) },
    ],
    [
      'an RSA signature by an EC key',
      'signature',
      { signatureAlgorithm: derSequence(derObjectIdentifier('1.2.840.113549.1.1.11')) },
    ],
    [
      'ECDSA with SHA-1',
      'algorithm_unsupported',
      { signatureAlgorithm: derSequence(derObjectIdentifier('1.2.840.10045.4.1')) },
    ],
    ['no ESSCertID', 'ess_missing', { attributes: without(signingCertificateV2) }],
    ['an empty list of ESSCertIDs', 'ess_missing', { attributes: named(derSequence(derSequence())) }],
    [
      "ESSCertID of the signer's issuer",
      'ess_mismatch',
      { attributes: named(essCertificate(middle, 'sha256')) },
    ],
    [
      'ESSCertID with the right issuer and serial',
      'verified',
      { attributes: named(essCertificate(leaf, 'sha256', derIssuerSerial(leaf))) },
    ],
    [
      'ESSCertID with another serial',
      'ess_mismatch',
      { attributes: named(essCertificate(leaf, 'sha256', derIssuerSerial(stranger.leaf))) },
    ],
    [
      'SHA-1 ESSCertID alone',
      'verified',
      {
        attributes: (usual) => [
          ...without(signingCertificateV2)(usual),
          derAttribute(signingCertificate, essCertificate(leaf, 'sha1')),
        ],
      },
    ],
    [
      'SHA-1 ESSCertID of another, beside a right one',
      'ess_mismatch',
      { attributes: (usual) => [...usual, derAttribute(signingCertificate, essCertificate(middle, 'sha1'))] },
    ],
    [
      'signer identifier of another certificate',
      'ess_mismatch',
      { certificates: [leaf, middle], sid: derSid(middle) },
    ],
    ['signer identifier of none', 'signer_missing', { sid: derSid(stranger.leaf) }],
    ["the signer's certificate after another one", 'verified', { certificates: [middle, leaf] }],
    ['certificates without the signer', 'signer_missing', { certificates: [middle, root] }],
    ["a stranger's stamp", 'signer_untrusted', { certificates: [stranger.leaf], sid: derSid(stranger.leaf) }],
    [
      'something else than a certificate',
      'malformed',
      { certificates: [derElement(contextTag(2, true)), leaf] },
    ],
    ['a certificate that is none', 'malformed', { certificates: [derSequence(), leaf] }],
    ['an extension twice', 'malformed', { certificates: [doubled, leaf] }],
    ['no certificates', 'verified', { certificates: [] }],
    ['by subject key identifier', 'signer_missing', { sid: derElement(contextTag(0, false), digest) }],
    [
      'by right subject key identifier',
      'verified',
      { sid: derElement(contextTag(0, false), keyIdentifier(leaf)) },
    ],
    ['a genTime with offset', 'malformed', { genTime: derElement(0x18, utf8('20240301120000+0100')) }],
  ];
  const chains = [[leaf, middle, root]];
  for (const [name, code, forgery] of cases) {
    const usable = code === 'ess_mismatch' && forgery.sid ? [...chains, [middle, root]] : chains;
    const response = forgeResponse(ca, { digest, ...forgery });
    t.equal(await codeOf({ response, digest, policyOid: POLICY, chains: usable }), code, name);
  }
});

t.test('a certificate that is not for time-stamping alone is refused', async (t) => {
  const eku = '2.5.29.37';
  const usage = (value: Uint8Array) =>
    leafExtensions('2.5.29.15', { oid: '2.5.29.15', critical: true, value });
  const unknown = { oid: '1.2.3.4', critical: true, value: derSequence() };
  const cases: [string, TimestampErrorCode | 'verified', ReturnType<typeof leafExtensions>][] = [
    ['no extended key usage', 'eku_missing', leafExtensions(eku)],
    ['for code signing', 'eku_missing', leafExtensions(eku, extendedKeyUsage(true, CODE_SIGNING))],
    ['for anything', 'eku_missing', leafExtensions(eku, extendedKeyUsage(true, '2.5.29.37.0'))],
    ['not critical', 'eku_not_critical', leafExtensions(eku, extendedKeyUsage(false, TIME_STAMPING))],
    [
      'code signing too',
      'eku_extra',
      leafExtensions(eku, extendedKeyUsage(true, TIME_STAMPING, CODE_SIGNING)),
    ],
    [
      'the same twice',
      'eku_extra',
      leafExtensions(eku, extendedKeyUsage(true, TIME_STAMPING, TIME_STAMPING)),
    ],
    ['key usage for encryption too', 'key_usage', usage(bits(5, 0b1010_0000))],
    ['key usage for certificates', 'key_usage', usage(bits(2, 0b0000_0100))],
    ['key usage of two octets', 'key_usage', usage(bits(7, 0x80, 0x80))],
    ['key usage for signatures that bind', 'verified', usage(bits(6, 0b1100_0000))],
    ['no key usage', 'verified', leafExtensions('2.5.29.15')],
    ['an unknown critical extension', 'chain_invalid', [...leafExtensions(''), unknown]],
    ['an unknown extension', 'verified', [...leafExtensions(''), { ...unknown, critical: false }]],
  ];
  for (const [name, code, extensions] of cases) {
    const ca = forgeCa({ leaf: { extensions } });
    t.equal(
      await codeOf({ response: forgeResponse(ca, { digest }), digest, chains: [ca.chain] }),
      code,
      name,
    );
  }
});

t.test('only a chain that is whole and in order is believed', async (t) => {
  const ca = forgeCa();
  const stranger = forgeCa();
  const [leaf = new Uint8Array(), middle = new Uint8Array(), root = new Uint8Array()] = ca.chain;
  const foreignMiddle = stranger.chain[1] ?? new Uint8Array();
  const response = forgeResponse(ca, { digest });
  const cases: [string, TimestampErrorCode | 'verified', Uint8Array[][]][] = [
    ['in order', 'verified', [[leaf, middle, root]]],
    ['up to an issuer that is trusted', 'verified', [[leaf, middle]]],
    ['leaf not first', 'chain_order', [[middle, leaf, root]]],
    ['root first', 'chain_order', [[root, middle, leaf]]],
    ['issuers swapped', 'chain_order', [[leaf, root, middle]]],
    ['issuer left out', 'chain_order', [[leaf, root]]],
    ['leaf alone', 'chain_invalid', [[leaf]]],
    ['an issuer of the same name and another key', 'chain_invalid', [[leaf, foreignMiddle, root]]],
    ['an issuer that is no certificate', 'chain_invalid', [[leaf, derSequence(), root]]],
    ['far too long', 'chain_invalid', [[leaf, ...new Array<Uint8Array>(10).fill(middle)]]],
    [
      'a broken one beside a good one',
      'verified',
      [
        [leaf, root],
        [leaf, middle, root],
      ],
    ],
    ['without the leaf', 'signer_untrusted', [[middle, root]]],
    ['empty', 'signer_untrusted', [[]]],
    ['none', 'signer_untrusted', []],
  ];
  for (const [name, code, chains] of cases) t.equal(await codeOf({ response, digest, chains }), code, name);

  const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey;
  const bad: Record<string, CaChanges> = {
    'an issuer that is no authority': { intermediate: { extensions: leafExtensions('') } },
    'an issuer without extensions': { intermediate: { extensions: [] } },
    'more authorities in a row than allowed': {
      root: {
        extensions: [{ oid: '2.5.29.19', critical: true, value: derSequence(derTrue(), derInteger(0)) }],
      },
    },
    'a leaf by another key': { intermediate: { publicKey: key, extensions: caExtensions(key) } },
  };
  for (const [name, changes] of Object.entries(bad)) {
    const wrong = forgeCa(changes);
    const stamp = forgeResponse(wrong, { digest });
    t.equal(await codeOf({ response: stamp, digest, chains: [wrong.chain] }), 'chain_invalid', name);
  }
});

t.test('a key of another kind than supported is refused', async (t) => {
  const kinds: [string, TimestampErrorCode][] = [
    ['ed25519', 'algorithm_unsupported'],
    ['secp256k1', 'algorithm_unsupported'],
    ['P-384', 'signature'],
    ['rsa', 'signature'],
  ];
  for (const [kind, code] of kinds) {
    const ca = forgeCa({ leaf: { publicKey: publicKeyOf(kind) } });
    t.equal(
      await codeOf({ response: forgeResponse(ca, { digest }), digest, chains: [ca.chain] }),
      code,
      kind,
    );
  }
});

t.test('a response that is not DER is malformed', async (t) => {
  const ca = forgeCa();
  const response = forgeResponse(ca, { digest });
  const chains = [ca.chain];
  for (let length = 0; length < response.length; length += 16) {
    t.equal(
      await codeOf({ response: response.subarray(0, length), digest, chains }),
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
    t.equal(await codeOf({ response: bytes, digest, chains }), 'malformed', name);
  }
  for (let round = 0; round < 200; round += 1) {
    const garbage = randomBytes(1 + round * 3);
    if (round % 2 === 0) garbage[0] = 0x30;
    t.equal(await codeOf({ response: garbage, digest, chains }), 'malformed');
  }
  const padded = concatBytes(response, new Uint8Array(65_536));
  t.equal(await codeOf({ response: padded, digest, chains }), 'too_large');
});

t.test('a response with any bit flipped does not verify', async (t) => {
  const ca = forgeCa();
  const response = forgeResponse(ca, { digest, nonce });
  const expected = { digest, nonce, chains: [ca.chain], policyOid: POLICY };
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

t.test('values have one spelling each', async (t) => {
  const time = (text: string) =>
    generalizedTime(parseDer(derElement(0x18, utf8(text)), 100), 'time').toISOString();
  t.equal(time('20240229235959Z'), '2024-02-29T23:59:59.000Z');
  t.equal(time('20240229235959.5Z'), '2024-02-29T23:59:59.500Z');
  t.equal(time('20240229235959.123999999Z'), '2024-02-29T23:59:59.123Z');
  t.equal(time('20240229235959.120Z'), '2024-02-29T23:59:59.120Z');
  const badTimes = [
    '20230229000000Z',
    '20241301000000Z',
    '20240101240000Z',
    '20240101235960Z',
    '202401010000Z',
    '',
  ];
  for (const text of [
    ...badTimes,
    '20240101000000',
    '20240101000000,5Z',
    '20240101000000.Z',
    `20240101000000.${'1'.repeat(40)}Z`,
  ]) {
    t.throws(() => time(text), FormatError, text);
  }

  const oids = [
    '2.25.277798158585258549510730547708933657753',
    '1.2.840.113549',
    '2.999.3',
    '0.39.0',
    '1.3.6.1.4.1',
  ];
  for (const oid of oids) t.equal(objectIdentifier(parseDer(derObjectIdentifier(oid), 100), 'oid'), oid);
  for (const hex of ['0600', '060180', '0602802a', '06022a80', `0641${'2a'.repeat(65)}`]) {
    t.throws(() => objectIdentifier(parseDer(fromHex(hex), 100), 'oid'), FormatError, hex);
  }
  for (const text of ['', '1', '3.1', '1.02', '1.a', '1..2'])
    t.throws(() => derObjectIdentifier(text), RangeError, text);

  t.equal(toHex(derInteger(fromHex('000080'))), '02020080');
  t.equal(toHex(derInteger(0)), '020100');
  t.equal(toHex(unsignedInteger(parseDer(fromHex('02020080'), 100), 'integer')), '80');
  t.equal(smallInteger(parseDer(fromHex('02017f'), 100), 'integer'), 127);
  for (const hex of ['0200', '0201ff', '0202007f', '02020000']) {
    t.throws(() => unsignedInteger(parseDer(fromHex(hex), 100), 'integer'), FormatError, hex);
  }
  t.throws(() => smallInteger(parseDer(fromHex('02020080'), 100), 'integer'), FormatError);
});

t.test('a name is one line of text', (t) => {
  const attribute = (oid: string, value: Uint8Array) => derSequence(derObjectIdentifier(oid), value);
  const name = derSequence(
    derSetOf(attribute('2.5.4.6', derElement(0x13, utf8('DE')))),
    derSetOf(attribute('2.5.4.10', derElement(0x1e, fromHex('00dc0062')))),
    derSetOf(
      attribute('2.5.4.3', derUtf8String(' a,b\n')),
      attribute('1.2.3', derElement(0x14, fromHex('fc'))),
    ),
  );
  t.equal(nameText(parseDer(name, 200)), '1.2.3=ü+CN=\\ a\\,b\\0a,O=Üb,C=DE');
  t.end();
});

function withByte(bytes: Uint8Array, index: number, value: number): Uint8Array {
  return Uint8Array.from(bytes).with(index, value);
}

function publicKeyOf(kind: string) {
  if (kind === 'ed25519') return generateKeyPairSync('ed25519').publicKey;
  if (kind === 'rsa') return generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey;
  return generateKeyPairSync('ec', { namedCurve: kind }).publicKey;
}

/** The subject key identifier that the forged certificate carries: 20 bytes after its OID. */
function keyIdentifier(certificate: Uint8Array): Uint8Array {
  const marker = Buffer.from('0603551d0e04160414', 'hex');
  const start = Buffer.from(certificate).indexOf(marker) + marker.length;
  return certificate.subarray(start, start + 20);
}
