/** Public keys of backends as SPKI in DER, in the forms in which they give them. */
import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import type { SignerAlgorithm } from './backend.js';

const COORDINATE_BYTES = 32;
const UNCOMPRESSED = 4;

/** A public key with its algorithm; undefined if it is of none that the protocol has. */
export type PublicKey = { readonly algorithm: SignerAlgorithm; readonly spki: Uint8Array };

/** Reads a public key in PEM or in SPKI. Returns undefined if it cannot be read, or is of another algorithm. */
export function readPublicKey(key: string | Uint8Array): PublicKey | undefined {
  return fromKeyObject(() =>
    typeof key === 'string'
      ? createPublicKey(key)
      : createPublicKey({ key: Buffer.from(key), format: 'der', type: 'spki' }),
  );
}

/** The same of the raw key of Ed25519, 32 bytes. */
export function readEd25519(raw: Uint8Array): PublicKey | undefined {
  return readJwk({ kty: 'OKP', crv: 'Ed25519', x: Buffer.from(raw).toString('base64url') });
}

/** The same of an uncompressed point of P-256. */
export function readP256Point(point: Uint8Array): PublicKey | undefined {
  if (point.length !== 2 * COORDINATE_BYTES + 1 || point[0] !== UNCOMPRESSED) return undefined;
  const [x, y] = [1, 1 + COORDINATE_BYTES].map((at) =>
    Buffer.from(point.subarray(at, at + COORDINATE_BYTES)).toString('base64url'),
  );
  return readJwk({ kty: 'EC', crv: 'P-256', x: x as string, y: y as string });
}

/** The same of a JSON Web Key. */
export function readJwk(key: JsonWebKey): PublicKey | undefined {
  return fromKeyObject(() => createPublicKey({ key, format: 'jwk' }));
}

function fromKeyObject(make: () => KeyObject): PublicKey | undefined {
  try {
    const key = make();
    const algorithm = algorithmOf(key);
    return algorithm && { algorithm, spki: key.export({ type: 'spki', format: 'der' }) };
  } catch {
    return undefined;
  }
}

function algorithmOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): SignerAlgorithm | undefined {
  if (asymmetricKeyType === 'ed25519') return 'ed25519';
  return asymmetricKeyDetails?.namedCurve === 'prime256v1' ? 'ecdsa-p256' : undefined;
}
