/** ML-DSA-44 private keys (FIPS 204) in PKCS#8 PEM (RFC 9881): the seed alone, or with the expanded key as OpenSSL writes. */
import { ml_dsa44 } from '@noble/post-quantum/ml-dsa.js';

/** A private key, in a closure, so that nothing prints it. */
export type MlDsaKey = {
  /** 1,312 raw bytes. */
  readonly publicKey: Uint8Array;
  /** A hedged signature of 2,420 bytes with an empty context. Takes about 10 ms. */
  readonly sign: (data: Uint8Array) => Uint8Array;
};

const SEED_BYTES = 32;
const LABEL = 'PRIVATE KEY';
const PEM = new RegExp(`^-----BEGIN ${LABEL}-----([A-Za-z0-9+/=\\s]+)-----END ${LABEL}-----\\s*$`);

/** id-ml-dsa-44, as DER has it. */
const ALGORITHM = Buffer.from('0609608648016503040311', 'hex');

/** The DER up to the seed, and between seed and expanded key. */
const SEED_ONLY = Buffer.from('3034020100300b0609608648016503040311042280' + '20', 'hex');
const BOTH = Buffer.from('30820a3e020100300b060960864801650304031104820a2a30820a260420', 'hex');
const EXPANDED = Buffer.from('04820a00', 'hex');

/** Whether a PEM holds an ML-DSA-44 private key, in any form. */
export function isMlDsaKey(pem: string): boolean {
  return findDer(pem)?.subarray(0, 32).includes(ALGORITHM) ?? false;
}

/** Parses a private key in PKCS#8 PEM. Throws an Error that names the problem and quotes nothing of the key. */
export function parseMlDsaKey(pem: string): MlDsaKey {
  const der = findDer(pem);
  if (der === undefined) throw new Error('it is not a private key in PKCS#8 PEM');
  const { seed, expanded } = readSeed(der);
  const { publicKey, secretKey } = ml_dsa44.keygen(seed);
  if (expanded !== undefined && Buffer.compare(expanded, secretKey) !== 0) {
    throw new Error('its seed is not that of its expanded key');
  }
  return { publicKey, sign: (data) => ml_dsa44.sign(data, secretKey) };
}

function findDer(pem: string): Buffer | undefined {
  const [, body] = PEM.exec(pem) ?? [];
  return body === undefined ? undefined : Buffer.from(body, 'base64');
}

/** The PKCS#8 PEM of a key from its seed, 32 random bytes. */
export function mlDsaKeyPem(seed: Uint8Array): string {
  if (seed.length !== SEED_BYTES) throw new RangeError('a seed has 32 bytes');
  return `-----BEGIN ${LABEL}-----\n${wrap(Buffer.concat([SEED_ONLY, seed]))}-----END ${LABEL}-----\n`;
}

function wrap(der: Buffer): string {
  return der.toString('base64').replace(/.{1,64}/g, '$&\n');
}

function readSeed(der: Buffer): { seed: Uint8Array; expanded?: Uint8Array } {
  const seedOf = (prefix: Buffer) => Uint8Array.from(der.subarray(prefix.length, prefix.length + SEED_BYTES));
  if (startsWith(der, SEED_ONLY) && der.length === SEED_ONLY.length + SEED_BYTES) {
    return { seed: seedOf(SEED_ONLY) };
  }
  const expanded = der.subarray(BOTH.length + SEED_BYTES);
  const isWhole = expanded.length === EXPANDED.length + ml_dsa44.lengths.secretKey!;
  if (startsWith(der, BOTH) && startsWith(expanded, EXPANDED) && isWhole) {
    return { seed: seedOf(BOTH), expanded: expanded.subarray(EXPANDED.length) };
  }
  throw new Error('it is not an ML-DSA-44 key with its seed');
}

function startsWith(bytes: Buffer, prefix: Buffer): boolean {
  return bytes.subarray(0, prefix.length).equals(prefix);
}
