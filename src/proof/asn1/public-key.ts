/**
 * Keys that sign, each with the one hash that Sigstore's algorithm registry pairs with it: Ed25519 (pure), ECDSA P-256
 * with SHA-256, P-384 with SHA-384, P-521 with SHA-512.
 */

import { FormatError } from '../bytes/format-error.js';
import { verifyEd25519 } from '../bytes/primitives.js';
import { verifySignature } from '../rfc3161/algorithm.js';
import { TimestampError } from '../rfc3161/error.js';
import { parseDer, TAG } from './der.js';
import { membersOf, objectIdentifier } from './der-read.js';

/** A public key; `spki` is its DER, `algorithm` its common name. */
export type PublicKey = {
  readonly spki: Uint8Array;
  readonly algorithm: string;
  /** Whether the signature (ECDSA in DER, Ed25519 of 64 bytes) over `data` is by the key. False for a malformed one. */
  verify(data: Uint8Array, signature: Uint8Array): Promise<boolean>;
};

const ED25519_OID = '1.3.101.112';
const EC_OID = '1.2.840.10045.2.1';
const MAX_SPKI_BYTES = 1024;

/** By the OID of the curve: its name, and the OID of its ECDSA signatures. */
const CURVES: ReadonlyMap<string, { name: string; signatureOid: string }> = new Map([
  ['1.2.840.10045.3.1.7', { name: 'ECDSA P-256', signatureOid: '1.2.840.10045.4.3.2' }],
  ['1.3.132.0.34', { name: 'ECDSA P-384', signatureOid: '1.2.840.10045.4.3.3' }],
  ['1.3.132.0.35', { name: 'ECDSA P-521', signatureOid: '1.2.840.10045.4.3.4' }],
]);

/** The key of a SubjectPublicKeyInfo in DER. Throws FormatError if it is malformed or of another kind. */
export function parsePublicKey(spki: Uint8Array): PublicKey {
  const node = parseDer(spki, MAX_SPKI_BYTES);
  const algorithm = membersOf(membersOf(node, 'the key').take(TAG.sequence), 'the key');
  const oid = objectIdentifier(algorithm.takeAny(), 'the key');
  if (oid === ED25519_OID) {
    return { spki, algorithm: 'Ed25519', verify: (data, signature) => verifyEd25519(spki, data, signature) };
  }
  if (oid !== EC_OID) throw new FormatError('is neither an Ed25519 nor an ECDSA key');
  const curve = CURVES.get(objectIdentifier(algorithm.take(TAG.oid), 'the key'));
  if (curve === undefined) throw new FormatError('is on another curve than P-256, P-384 or P-521');
  const { name, signatureOid } = curve;
  const verify = async (data: Uint8Array, signature: Uint8Array) => {
    try {
      return await verifySignature(node, { signatureOid, digestOid: '' }, data, signature);
    } catch (error) {
      // Web Crypto rejects points that are not on the curve; no signature is by such a key.
      if (error instanceof TimestampError) return false;
      throw error;
    }
  };
  return { spki, algorithm: name, verify };
}
