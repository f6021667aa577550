import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { environmentName } from '../../protocol/environment.js';
import type { KeyRing } from './key-ring.js';
import type { MlDsaKey } from './ml-dsa-key.js';

/** A private key that another process holds: the path of its Unix domain socket, and how it names the key. */
export type SocketKey = { readonly socketPath: string; readonly keyId: string };

/** Where a key that signs is: in this process, or in another one. */
export type KeySource = KeyObject | SocketKey;

/** The private keys of one use, per environment: at least one, several during a rotation. */
export type SigningKeys<K = KeyObject> = {
  readonly live: readonly [K, ...K[]];
  readonly test: readonly [K, ...K[]];
};

/** Returns the private keys of an environment, a proto number. */
export function signingKeysOf<K>(keys: SigningKeys<K>, environment: number): readonly [K, ...K[]] {
  return keys[environmentName(environment)];
}

/** The raw Ed25519 public key is the last part of its SPKI. */
const RAW_ED25519_BYTES = 32;

/** Returns the public key of an Ed25519 key, private or public: 32 raw bytes. */
export function rawEd25519PublicKey(key: KeyObject): Uint8Array {
  const publicKey = key.type === 'public' ? key : createPublicKey(key);
  return publicKey.export({ type: 'spki', format: 'der' }).subarray(-RAW_ED25519_BYTES);
}

/** The secrets of a server process. */
export type Secrets = {
  readonly secretKeys: KeyRing;
  /** ECDSA P-256, to sign statements. The first of an environment signs until a rotation. */
  readonly dsse: SigningKeys<KeySource>;
  /** Ed25519, to sign checkpoints. The first of an environment signs its first log. */
  readonly log: SigningKeys<KeySource>;
  /** ML-DSA-44, to sign checkpoints a second time; undefined if not configured. */
  readonly logMlDsa: SigningKeys<MlDsaKey> | undefined;
  /** Ed25519, to sign snapshot and timestamp metadata of TUF; none if not configured. */
  readonly tuf: readonly KeySource[];
  /** The token of the admin API. The admin API is off if undefined. */
  readonly adminToken: string | undefined;
};

/** The use of a signing key. Determines its algorithm. */
export type SigningKeyUse = 'dsse' | 'log';

/** Parses a private key in PKCS#8 PEM. Throws an Error that names the problem and quotes nothing of the key. */
export function parseSigningKey(pem: string, use: SigningKeyUse): KeyObject {
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
