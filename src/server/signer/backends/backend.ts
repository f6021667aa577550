/** What holds private keys for `attest signer`, and signs with them. */
import type { KeyReference } from '../../../config/signer/keys.js';
import { SigningError } from '../../keys/signing-error.js';

/** The algorithms of the protocol. */
export type SignerAlgorithm = 'ecdsa-p256' | 'ed25519';

/** A key that a backend has found. */
export type BackendKey = {
  readonly algorithm: SignerAlgorithm;
  /** SPKI in DER. */
  readonly spki: Uint8Array;
  /** ECDSA with SHA-256 in DER, or Ed25519 of 64 bytes. Rejects with a SigningError, in one line that says what to do. */
  sign(data: Uint8Array, signal: AbortSignal): Promise<Uint8Array>;
};

/** An open backend. */
export type Backend = {
  /** Finds a key. Rejects with a SigningError. */
  open(reference: KeyReference, signal: AbortSignal): Promise<BackendKey>;
  close(): Promise<void>;
};

/** A credential was rejected that counts attempts: whoever asks again may lock himself out. */
export class CredentialRejected extends SigningError {}

/** The error of a key of another algorithm. */
export function wrongAlgorithm(key: string, found: string): SigningError {
  return new SigningError(`${key} is a key of type ${found}, not ECDSA P-256 or Ed25519: make another key`);
}

/** Loads an optional package. Rejects with a SigningError if it is not installed. */
export async function loadPackage<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if (Object(error).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new SigningError(`a package for this kind of backend is missing: npm install ${name}`);
  }
}
