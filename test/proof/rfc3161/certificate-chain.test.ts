/** Validation of certificate chains, beside that of openssl and of Sigstore. */
import t from 'tap';
import { derElement, derObjectIdentifier, derSequence, derSetOf } from '../../../src/proof/asn1/der-write.js';
import { utf8 } from '../../../src/proof/bytes/encoding.js';
import {
  chainVerdict,
  issueAuthority,
  issueChain,
  issueLeaf,
  reissue,
} from '../../support/certificates/chain-forge.js';
import { identifiedChains, misidentifiedChains } from '../../support/certificates/key-identifiers.js';
import {
  type ChainAlgorithm,
  makeOpensslChain,
  opensslAccepts,
} from '../../support/certificates/openssl-chain.js';
import { caExtensions, GEN_TIME, leafExtensions } from '../../support/certificates/timestamp-forge.js';
import { unauthorisedChains, unprocessedExtensions } from '../../support/certificates/wrong-authorities.js';
import {
  expiredChains,
  misnamedChains,
  misshapenChains,
  missignedChains,
} from '../../support/certificates/wrong-chains.js';
import { sigstoreAcceptsChain } from '../../support/judging/foreign-verifiers.js';

const RSA = ['-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048'];
const ec = (curve: string, ...options: string[]) => {
  const all = [`ec_paramgen_curve:${curve}`, ...options];
  return ['-algorithm', 'EC', ...all.flatMap((option) => ['-pkeyopt', option])];
};
const pss = (hash: string, ...options: string[]) => {
  const all = ['rsa_padding_mode:pss', ...options];
  return [`-${hash}`, ...all.flatMap((option) => ['-sigopt', option])];
};

type Expected = 'accepted' | 'chain_invalid';

const ALGORITHMS: [name: string, algorithm: ChainAlgorithm, ours: Expected, sigstore: boolean][] = [
  ['RSA, SHA-256', { key: RSA, signing: ['-sha256'] }, 'accepted', true],
  ['RSA, SHA-384', { key: RSA, signing: ['-sha384'] }, 'accepted', true],
  ['RSA, SHA-512', { key: RSA, signing: ['-sha512'] }, 'accepted', true],
  ['RSA, SHA-1', { key: RSA, signing: ['-sha1'] }, 'accepted', false],
  ['RSA, SHA-224', { key: RSA, signing: ['-sha224'] }, 'chain_invalid', true],
  ['RSA-PSS, SHA-256', { key: RSA, signing: pss('sha256', 'rsa_pss_saltlen:32') }, 'accepted', false],
  ['RSA-PSS, longest salt', { key: RSA, signing: pss('sha256') }, 'accepted', false],
  ['RSA-PSS, SHA-512', { key: RSA, signing: pss('sha512', 'rsa_pss_saltlen:20') }, 'accepted', false],
  ['RSA-PSS, defaults', { key: RSA, signing: pss('sha1', 'rsa_pss_saltlen:20') }, 'accepted', false],
  [
    'RSA-PSS, MGF1 of another hash',
    { key: RSA, signing: pss('sha256', 'rsa_mgf1_md:sha512') },
    'chain_invalid',
    false,
  ],
  ['key for RSA-PSS alone', { key: ['-algorithm', 'RSA-PSS'], signing: pss('sha384') }, 'accepted', false],
  ['EC P-256, SHA-256', { key: ec('P-256'), signing: ['-sha256'] }, 'accepted', true],
  ['EC P-256, SHA-512', { key: ec('P-256'), signing: ['-sha512'] }, 'accepted', true],
  ['EC P-256, SHA-1', { key: ec('P-256'), signing: ['-sha1'] }, 'accepted', false],
  ['EC P-384, SHA-384', { key: ec('P-384'), signing: ['-sha384'] }, 'accepted', true],
  ['EC P-521, SHA-512', { key: ec('P-521'), signing: ['-sha512'] }, 'accepted', true],
  ['EC secp256k1', { key: ec('secp256k1'), signing: ['-sha256'] }, 'chain_invalid', true],
  ['Ed25519', { key: ['-algorithm', 'ED25519'], signing: [] }, 'chain_invalid', true],
];

t.test('chains that openssl issues', async (t) => {
  const dir = t.testdir();
  for (const [name, algorithm, ours, sigstore] of ALGORITHMS) {
    const chain = makeOpensslChain(dir, algorithm);
    const at = new Date();
    t.equal(await chainVerdict(chain, at), ours, name);
    t.ok(opensslAccepts(dir, chain, at), `openssl accepts ${name}`);
    t.equal(sigstoreAcceptsChain(chain, at), sigstore, `Sigstore on ${name}`);
  }
});

function attribute(oid: string, tag: number, text: string) {
  return derSequence(derObjectIdentifier(oid), derElement(tag, utf8(text)));
}

const commonName = (tag: number, text: string) => derSequence(derSetOf(attribute('2.5.4.3', tag, text)));
const [PRINTABLE, UTF8] = [0x13, 0x0c];

/** Names that are the same by RFC 5280, section 7.1, and not byte by byte. */
const SAME_NAMES: Record<string, [subject: Uint8Array, issuer: Uint8Array]> = {
  'string type': [commonName(PRINTABLE, 'Root'), commonName(UTF8, 'Root')],
  case: [commonName(UTF8, 'Time ROOT'), commonName(UTF8, 'time Root')],
  'white space': [commonName(UTF8, ' Time  Root'), commonName(UTF8, 'Time Root ')],
};

t.test('names are compared as RFC 5280 says', async (t) => {
  const dir = t.testdir();
  for (const [name, [subject, issuer]] of Object.entries(SAME_NAMES)) {
    const root = issueAuthority('', undefined, { subject, issuer: subject });
    const chain = [issueLeaf(root, { issuer }), root.der];
    t.equal(await chainVerdict(chain, GEN_TIME), 'accepted', name);
    t.ok(opensslAccepts(dir, chain, GEN_TIME), `openssl accepts ${name}`);
  }
});

const root = issueAuthority('Root');
const policy = derObjectIdentifier('1.3.6.1.4.1.32473.1');
const withExtension = (oid: string, critical: boolean, value: Uint8Array) => ({
  intermediate: { extensions: [...caExtensions(root.publicKey).slice(0, 2), { oid, critical, value }] },
});

function selfIssuedChain(): Uint8Array[] {
  const old = issueAuthority('Intermediate', root, { pathLength: 0 });
  const renewed = issueAuthority('Intermediate', old, { pathLength: 0 });
  return [issueLeaf(renewed), renewed.der, old.der, root.der];
}

function negativeSerialChain(): Uint8Array[] {
  const issuer = issueAuthority('Intermediate', root);
  const negative = reissue(issuer.der, root, ([version, serial, ...members]) => {
    const changed = Uint8Array.from(serial!);
    changed[2] = 0x80;
    return [version!, changed, ...members];
  });
  return [issueLeaf(issuer), negative, root.der];
}

const VALID: Record<string, Uint8Array[]> = {
  'that ends in a trusted intermediate': issueChain({}).slice(0, 2),
  'with an issuer without key usage': issueChain({
    intermediate: { extensions: caExtensions(root.publicKey).slice(0, 1) },
  }),
  'with self-issued certificates, which no path length counts': selfIssuedChain(),
  'that is valid past 2049': issueChain({ root: { notAfter: new Date('9999-12-31T23:59:59Z') } }),
  'with a negative serial number': negativeSerialChain(),
  'with critical policies': issueChain(withExtension('2.5.29.32', true, derSequence(derSequence(policy)))),
  'with policy constraints that are not critical': issueChain(
    withExtension('2.5.29.36', false, derSequence(derElement(0x81, Uint8Array.of(9)))),
  ),
  ...identifiedChains(),
  'whose leaf has no basic constraints': issueChain({ leaf: { extensions: leafExtensions('2.5.29.19') } }),
};

t.test('a chain is accepted', async (t) => {
  const dir = t.testdir();
  for (const [name, chain] of Object.entries(VALID)) {
    t.equal(await chainVerdict(chain, GEN_TIME), 'accepted', name);
    t.ok(opensslAccepts(dir, chain, GEN_TIME), `openssl: ${name}`);
  }
});

t.test('a chain is rejected for', async (t) => {
  const dir = t.testdir();
  const authorities = [unauthorisedChains(), unprocessedExtensions(), misidentifiedChains()];
  const chains = [misnamedChains(), expiredChains(), missignedChains(), misshapenChains(), ...authorities];
  for (const { name, chain, code, acceptedBy } of chains.flat()) {
    t.equal(await chainVerdict(chain, GEN_TIME), code, name);
    t.equal(opensslAccepts(dir, chain, GEN_TIME), acceptedBy.includes('openssl'), `openssl: ${name}`);
    t.equal(sigstoreAcceptsChain(chain, GEN_TIME), acceptedBy.includes('sigstore'), `Sigstore: ${name}`);
  }
});
