import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { isMlDsaKey, mlDsaKeyPem, parseMlDsaKey } from './ml-dsa-key.js';
import { parseSigningKey, rawEd25519PublicKey } from './secrets.js';

/** A key that cosigns checkpoints; `publicKey` and signatures are raw. */
export type CosignerKey = {
  readonly algorithm: 'ed25519' | 'ml-dsa-44';
  readonly publicKey: Uint8Array;
  readonly sign: (data: Uint8Array) => Uint8Array;
};

/** Parses an Ed25519 or ML-DSA-44 private key in PKCS#8 PEM. Throws an Error that quotes nothing of the key. */
export function parseCosignerKey(pem: string): CosignerKey {
  if (isMlDsaKey(pem)) return { algorithm: 'ml-dsa-44', ...parseMlDsaKey(pem) };
  const key = parseSigningKey(pem, 'log');
  return {
    algorithm: 'ed25519',
    publicKey: Uint8Array.from(rawEd25519PublicKey(key)),
    sign: (data) => sign(null, data, key),
  };
}

/** Makes a new private key in PKCS#8 PEM. */
export function newCosignerKeyPem(algorithm: CosignerKey['algorithm']): string {
  if (algorithm === 'ml-dsa-44') return mlDsaKeyPem(randomBytes(32));
  return generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}
