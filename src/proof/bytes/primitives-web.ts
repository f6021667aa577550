/**
 * primitives.ts without Node: hashes in plain JavaScript, because the verifier needs them synchronously, signatures by
 * Web Crypto, which browsers have on secure origins only.
 */
import { hmac } from '@noble/hashes/hmac.js';
import { sha256 as nobleSha256 } from '@noble/hashes/sha2.js';
import { findRawEcdsa } from '../asn1/ecdsa-signature.js';
import type { Sha256 } from './primitives.js';

/** SubjectPublicKeyInfo of an Ed25519 key up to the 32 key bytes (RFC 8410). */
const ED25519_SPKI_PREFIX = decodeHex('302a300506032b6570032100');

/** SHA-256 of the parts in a row, 32 bytes. */
export function sha256(...parts: Uint8Array[]): Uint8Array {
  const state = createSha256();
  for (const part of parts) state.update(part);
  return state.digest();
}

/** Writes the SHA-256 of `data` to `target` from `at` on. */
export function sha256Into(data: Uint8Array, target: Uint8Array, at: number): void {
  target.set(sha256(data), at);
}

/** Creates an incremental SHA-256. */
export function createSha256(): Sha256 {
  const state = nobleSha256.create();
  return { update: (piece) => void state.update(piece), digest: () => state.digest() };
}

/** HMAC-SHA-256 (RFC 2104), 32 bytes. */
export function hmacSha256(key: Uint8Array, data: Uint8Array): Uint8Array {
  return hmac(nobleSha256, key, data);
}

/** The same in lower-case hex. */
export function hmacSha256Hex(key: Uint8Array, data: Uint8Array): string {
  return encodeHex(hmacSha256(key, data));
}

/** Whether two byte strings are equal. Not in constant time: for public values only. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

/** Whether `signature` (DER) over `data` is by this ECDSA P-256 key (SPKI, DER). A key or signature of another form is false. */
export async function verifyEcdsaP256Sha256(
  spki: Uint8Array,
  data: Uint8Array,
  signature: Uint8Array,
): Promise<boolean> {
  const key = await findPublicKey(spki, { name: 'ECDSA', namedCurve: 'P-256' });
  const raw = findRawEcdsa(signature, 32);
  if (key === undefined || raw === undefined) return false;
  return crypto.subtle.verify({ name: 'ECDSA', hash: 'SHA-256' }, key, own(raw), own(data));
}

/** Whether `signature` (64 bytes) over `data` is by this Ed25519 key (32 raw bytes, or SPKI in DER). Anything malformed is false. */
export async function verifyEd25519(
  rawOrSpki: Uint8Array,
  data: Uint8Array,
  signature: Uint8Array,
): Promise<boolean> {
  const spki = rawOrSpki.length === 32 ? ed25519Spki(rawOrSpki) : rawOrSpki;
  const key = await findPublicKey(spki, { name: 'Ed25519' });
  if (key === undefined || signature.length !== 64) return false;
  return crypto.subtle.verify('Ed25519', key, own(signature), own(data));
}

/** SubjectPublicKeyInfo (DER, 44 bytes) of a raw 32-byte Ed25519 key. */
export function ed25519Spki(raw: Uint8Array): Uint8Array {
  return Uint8Array.of(...ED25519_SPKI_PREFIX, ...raw);
}

/** UTF-8; a lone surrogate becomes U+FFFD. */
export function encodeUtf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** Lower-case hex. */
export function encodeHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Bytes of lower-case hex; unspecified bytes for other text. */
export function decodeHex(text: string): Uint8Array {
  return Uint8Array.from({ length: text.length >> 1 }, (_, i) =>
    Number.parseInt(text.slice(2 * i, 2 * i + 2), 16),
  );
}

/** Standard base64 with padding (RFC 4648, section 4). */
export function encodeBase64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
}

/** Bytes of standard base64; for other text, bytes with another base64. */
export function decodeBase64(text: string): Uint8Array {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    // Text that is not base64 decodes to nothing, whose canonical base64 is ''.
    return new Uint8Array();
  }
}

/** Undefined if the key is malformed. Throws if Web Crypto lacks the algorithm: that is no verdict. */
async function findPublicKey(spki: Uint8Array, algorithm: { name: string; namedCurve?: string }) {
  try {
    return await crypto.subtle.importKey('spki', own(spki), algorithm, false, ['verify']);
  } catch (error) {
    if (error instanceof DOMException && error.name === 'NotSupportedError') {
      throw new Error(`this browser cannot check ${algorithm.name} signatures`, { cause: error });
    }
    return undefined;
  }
}

/** Web Crypto rejects views of shared memory. */
function own(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(bytes);
}
