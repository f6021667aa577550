import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { environmentName } from '../../protocol/environment.js';
import type { KeyRing } from './key-ring.js';

/** The private keys of one use, by environment. */
export type SigningKeys = { readonly live: KeyObject; readonly test: KeyObject };

/** The private key of an environment, by its proto number. */
export function signingKeyOf(keys: SigningKeys, environment: number): KeyObject {
  return keys[environmentName(environment)];
}

/** A raw Ed25519 public key is the end of its SPKI. */
const RAW_ED25519_BYTES = 32;

/** The public half of an Ed25519 key: its 32 raw bytes. */
export function rawEd25519PublicKey(key: KeyObject): Uint8Array {
  return createPublicKey(key).export({ type: 'spki', format: 'der' }).subarray(-RAW_ED25519_BYTES);
}

/** Everything secret that a server process works with. */
export type Secrets = {
  readonly secretKeys: KeyRing;
  /** ECDSA P-256; they sign statements. */
  readonly dsse: SigningKeys;
  /** Ed25519; they sign checkpoints. */
  readonly log: SigningKeys;
  /** What opens the admin API; without one there is none. */
  readonly adminToken: string | undefined;
};

/** What a signing key is for, which decides its algorithm. */
export type SigningKeyUse = 'dsse' | 'log';

/** Reads a private key in PKCS#8 PEM. Throws an Error that says what is wrong and quotes nothing of it. */
export function readSigningKey(pem: string, use: SigningKeyUse): KeyObject {
  const key = readPrivateKey(pem);
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key;
  if (use === 'dsse' && !(type === 'ec' && details?.namedCurve === 'prime256v1')) {
    throw new Error(`it is a key of type ${type}, not ECDSA P-256`);
  }
  if (use === 'log' && type !== 'ed25519') throw new Error(`it is a key of type ${type}, not Ed25519`);
  return key;
}

function readPrivateKey(pem: string): KeyObject {
  if (!pem.includes('-----BEGIN PRIVATE KEY-----')) throw new Error('it is not a private key in PKCS#8 PEM');
  try {
    return createPrivateKey({ key: pem, format: 'pem' });
  } catch {
    throw new Error('its private key cannot be read');
  }
}
