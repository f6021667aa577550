/** Types of settings that hold or name secrets. */
import { KeyObject } from 'node:crypto';
import { type KeyRing, parseKeyRing } from '../server/keys/key-ring.js';
import { type MlDsaKey, parseMlDsaKey } from '../server/keys/ml-dsa-key.js';
import {
  type KeySource,
  parseSigningKey,
  type SigningKeys,
  type SigningKeyUse,
  type SocketKey,
} from '../server/keys/secrets.js';
import { InvalidValue } from './invalid-value.js';
import { readSettingFile } from './setting-files.js';
import type { SettingType } from './settings.js';

/** SECRET_KEY, as `parseKeyRing` reads it. */
export const secretKey: SettingType<KeyRing> = {
  expected: '<id>:<base64 of 32 random bytes>, or several separated by commas, the current one first',
  secret: true,
  fromFile: true,
  parse: (text) => {
    try {
      return parseKeyRing(text);
    } catch (error) {
      throw new InvalidValue((error as Error).message);
    }
  },
};

/**
 * `live=<path>,test=<path>`: different Ed25519 keys in PKCS#8 PEM, at least one and at most 8 for each environment.
 * `socket:<path>#<key id>` is a key of another process.
 */
export const logKeyFiles = keySources('Ed25519', 'log');

/** The same with ECDSA P-256 keys. */
export const dsseKeyFiles = keySources('ECDSA P-256', 'dsse');

/** The same with ML-DSA-44 keys, in files only. */
export const mlDsaKeyFiles: SettingType<SigningKeys<MlDsaKey>> = keyFiles(
  'ML-DSA-44',
  (path) => readKeyFile(path, parseMlDsaKey),
  (a, b) => Buffer.compare(a.publicKey, b.publicKey) === 0,
);

/** `<path>`, or several separated by commas: different Ed25519 keys in PKCS#8 PEM, or keys of another process. */
export const tufKeyFiles: SettingType<readonly KeySource[]> = {
  expected: '<file>, or several separated by commas, each with an Ed25519 private key in PKCS#8 PEM',
  parse: (text) => {
    const named = text.split(',', MAX_KEYS + 1).map((path) => ({ path }));
    return someOf(readKeys(named, readKeySource('log'), isSameSource));
  },
};

function keySources(algorithm: string, use: SigningKeyUse): SettingType<SigningKeys<KeySource>> {
  return keyFiles<KeySource>(algorithm, readKeySource(use), isSameSource);
}

function readKeySource(use: SigningKeyUse): (path: string) => KeySource {
  return (path) => parseSocketKey(path) ?? readKeyFile(path, (pem): KeyObject => parseSigningKey(pem, use));
}

function isSameSource(a: KeySource, b: KeySource): boolean {
  return a instanceof KeyObject ? b instanceof KeyObject && a.equals(b) : isSameSocketKey(a, b);
}

const SOCKET_KEY = /^socket:(\/[^#]{1,100})#([\w.:@/-]{1,128})$/;

/** Reads `socket:<path>#<key id>`. Returns undefined for anything else that is no socket. Throws InvalidValue. */
export function parseSocketKey(text: string): SocketKey | undefined {
  if (!text.startsWith('socket:')) return undefined;
  const match = SOCKET_KEY.exec(text);
  if (match === null) throw new InvalidValue('a key of another process is socket:/<path>#<key id>');
  return { socketPath: match[1]!, keyId: match[2]! };
}

function isSameSocketKey(a: SocketKey, b: KeySource): boolean {
  return !(b instanceof KeyObject) && a.socketPath === b.socketPath && a.keyId === b.keyId;
}

function keyFiles<K>(
  algorithm: string,
  readKey: (path: string) => K,
  isSame: (a: K, b: K) => boolean,
): SettingType<SigningKeys<K>> {
  return {
    expected: `live=<file>,test=<file>, each with an ${algorithm} private key in PKCS#8 PEM`,
    parse: (text) => {
      const named = text.split(',').map(parseNamedKey);
      const keys = readKeys(named, readKey, isSame);
      const of = (environment: string) => keys.filter((_, i) => named[i]!.environment === environment);
      return { live: someOf(of('live')), test: someOf(of('test')) };
    },
  };
}

/** Throws InvalidValue if a key occurs twice. */
function readKeys<K>(
  named: readonly { path: string }[],
  readKey: (path: string) => K,
  isSame: (a: K, b: K) => boolean,
): K[] {
  const keys = named.map(({ path }) => readKey(path));
  const twice = keys.findIndex((key, i) => keys.slice(0, i).some((other) => isSame(other, key)));
  if (twice >= 0) throw new InvalidValue(`${named[twice]!.path} has a key that is already named`);
  return keys;
}

const MAX_KEYS = 8;

function parseNamedKey(text: string): { environment: string; path: string } {
  const match = /^(live|test)=(.+)$/.exec(text);
  if (match === null) throw new InvalidValue();
  return { environment: match[1]!, path: match[2]! };
}

function someOf<K>([first, ...more]: K[]): [K, ...K[]] {
  if (first === undefined) throw new InvalidValue();
  if (more.length >= MAX_KEYS)
    throw new InvalidValue(`there are more than ${MAX_KEYS} keys for the same use`);
  return [first, ...more];
}

function readKeyFile<K>(path: string, parseKey: (pem: string) => K): K {
  const pem = readSettingFile(path);
  try {
    return parseKey(pem);
  } catch (error) {
    throw new InvalidValue(`${path}: ${(error as Error).message}`);
  }
}
