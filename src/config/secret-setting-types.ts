/** Types of settings that hold or name secrets. */
import type { KeyObject } from 'node:crypto';
import { type KeyRing, parseKeyRing } from '../server/keys/key-ring.js';
import { parseMlDsaKey } from '../server/keys/ml-dsa-key.js';
import {
  type MlDsaKeys,
  parseSigningKey,
  type SigningKeys,
  type SigningKeyUse,
} from '../server/keys/secrets.js';
import { readSettingFile } from './setting-files.js';
import { InvalidValue, type SettingType } from './settings.js';

/** SECRET_KEY, as `parseKeyRing` reads it. */
export const secretKey: SettingType<KeyRing> = {
  expected: '<id>:<base64 of 32 random bytes>, or several separated by commas, the current one first',
  secret: true,
  parse: (text) => {
    try {
      return parseKeyRing(text);
    } catch (error) {
      throw new InvalidValue((error as Error).message);
    }
  },
};

/** A bearer token (RFC 6750) of at least 24 characters. */
export const adminToken: SettingType<string> = {
  expected: '24 to 256 letters, digits or any of -._~+/=',
  secret: true,
  parse: (text) => {
    if (!/^[A-Za-z0-9\-._~+/=]{24,256}$/.test(text)) throw new InvalidValue();
    return text;
  },
};

/** `live=<path>,test=<path>`: two different private keys in PKCS#8 PEM, one for each environment. */
export function signingKeyFiles(use: SigningKeyUse): SettingType<SigningKeys> {
  const algorithm = use === 'dsse' ? 'ECDSA P-256' : 'Ed25519';
  return keyFiles(
    algorithm,
    (pem): KeyObject => parseSigningKey(pem, use),
    (a, b) => a.equals(b),
  );
}

/** `live=<path>,test=<path>`: two different ML-DSA-44 private keys in PKCS#8 PEM, one for each environment. */
export const mlDsaKeyFiles: SettingType<MlDsaKeys> = keyFiles(
  'ML-DSA-44',
  parseMlDsaKey,
  (a, b) => Buffer.compare(a.publicKey, b.publicKey) === 0,
);

function keyFiles<K>(
  algorithm: string,
  parseKey: (pem: string) => K,
  isSame: (a: K, b: K) => boolean,
): SettingType<{ live: K; test: K }> {
  return {
    expected: `live=<file>,test=<file>, each with an ${algorithm} private key in PKCS#8 PEM`,
    parse: (text) => {
      const match = /^live=([^,]+),test=([^,]+)$/.exec(text);
      if (match === null) throw new InvalidValue();
      const live = readKeyFile(match[1]!, parseKey);
      const test = readKeyFile(match[2]!, parseKey);
      if (isSame(live, test)) throw new InvalidValue('live and test have the same key');
      return { live, test };
    },
  };
}

function readKeyFile<K>(path: string, parseKey: (pem: string) => K): K {
  const pem = readSettingFile(path);
  try {
    return parseKey(pem);
  } catch (error) {
    throw new InvalidValue(`${path}: ${(error as Error).message}`);
  }
}
