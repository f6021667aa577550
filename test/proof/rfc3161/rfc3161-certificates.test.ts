/** The certificates of time stamps: purpose, chain and kinds of keys. */
import { generateKeyPairSync } from 'node:crypto';
import t from 'tap';
import { derInteger, derSequence, derTrue } from '../../../src/proof/asn1/der-write.js';
import { utf8 } from '../../../src/proof/bytes/encoding.js';
import { sha256 } from '../../../src/proof/bytes/primitives.js';
import type { TimestampErrorCode } from '../../../src/proof/rfc3161/error.js';
import {
  bits,
  type CaChanges,
  caExtensions,
  codeOf,
  extendedKeyUsage,
  forgeCa,
  forgeResponse,
  leafExtensions,
} from '../../support/certificates/timestamp-forge.js';

const digest = sha256(utf8('checkpoint'));
const stamped = { digest };
const TIME_STAMPING = '1.3.6.1.5.5.7.3.8';
const CODE_SIGNING = '1.3.6.1.5.5.7.3.3';

t.test('a certificate that is not only for time-stamping is rejected', async (t) => {
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
      await codeOf({ response: forgeResponse(ca, { digest }), stamped, chains: [ca.chain] }),
      code,
      name,
    );
  }
});

t.test('only a complete chain in order is accepted', async (t) => {
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
  for (const [name, code, chains] of cases) t.equal(await codeOf({ response, stamped, chains }), code, name);

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
    t.equal(await codeOf({ response: stamp, stamped, chains: [wrong.chain] }), 'chain_invalid', name);
  }
});

t.test('an unsupported kind of key is rejected', async (t) => {
  const kinds: [string, TimestampErrorCode][] = [
    ['ed25519', 'algorithm_unsupported'],
    ['secp256k1', 'algorithm_unsupported'],
    ['P-384', 'signature'],
    ['rsa', 'signature'],
  ];
  for (const [kind, code] of kinds) {
    const ca = forgeCa({ leaf: { publicKey: publicKeyOf(kind) } });
    t.equal(
      await codeOf({ response: forgeResponse(ca, { digest }), stamped, chains: [ca.chain] }),
      code,
      kind,
    );
  }
});

function publicKeyOf(kind: string) {
  if (kind === 'ed25519') return generateKeyPairSync('ed25519').publicKey;
  if (kind === 'rsa') return generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey;
  return generateKeyPairSync('ec', { namedCurve: kind }).publicKey;
}
