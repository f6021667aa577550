import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { readSettingFile } from '../../../config/setting-files.js';
import { parseSigningKey, rawEd25519PublicKey } from '../../../server/keys/secrets.js';
import { localTufKey } from '../../../server/keys/tuf-keys.js';
import type { TufSigner } from '../../../server/public/tuf/metadata.js';
import { UsageError } from '../../cli.js';

/** A root key: `sign` is undefined if the file has only the public key. */
export type RootKey = {
  readonly path: string;
  readonly publicKey: Uint8Array;
  readonly sign?: TufSigner['sign'];
};

/** Reads an Ed25519 key in PEM, private or public. Throws UsageError. */
export function readRootKey(path: string): RootKey {
  try {
    const pem = readSettingFile(path);
    if (!pem.includes('-----BEGIN PUBLIC KEY-----'))
      return { path, ...localTufKey(parseSigningKey(pem, 'log')) };
    const key = createPublicKey(pem);
    if (key.asymmetricKeyType !== 'ed25519')
      throw new Error(`it is a key of type ${key.asymmetricKeyType}, not Ed25519`);
    return { path, publicKey: rawEd25519PublicKey(key) };
  } catch (error) {
    throw new UsageError(`${path}: ${(error as Error).message}`);
  }
}

/** Reads such a key, or makes one and writes it to the file if there is none. Throws UsageError. */
export async function openRootKey(path: string): Promise<RootKey> {
  if (existsSync(path)) return readRootKey(path);
  const { privateKey } = generateKeyPairSync('ed25519');
  try {
    await writeFile(path, privateKey.export({ type: 'pkcs8', format: 'pem' }), {
      mode: 0o600,
      flag: 'wx',
      flush: true,
    });
  } catch (error) {
    throw new UsageError(`${path} cannot be written: ${(error as Error).message}`);
  }
  return readRootKey(path);
}

/** The keys that can sign. */
export function signersOf(keys: readonly RootKey[]): TufSigner[] {
  return keys.flatMap(({ publicKey, sign }) => (sign === undefined ? [] : [{ publicKey, sign }]));
}
