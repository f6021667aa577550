/**
 * The cryptography of proofs and text forms of bytes, by Node's own functions. The only file of `proof/` that needs
 * Node: in browsers the client's package has primitives-web.ts in its place, by `imports` in its package.json.
 * Verification is asynchronous because Web Crypto is.
 */
import { createHash, createHmac, createPublicKey, hash, type KeyObject, verify } from 'node:crypto';

/** SubjectPublicKeyInfo of an Ed25519 key up to the 32 key bytes (RFC 8410). */
const ED25519_SPKI_PREFIX = Uint8Array.of(
  0x30,
  0x2a,
  0x30,
  0x05,
  0x06,
  0x03,
  0x2b,
  0x65,
  0x70,
  0x03,
  0x21,
  0x00,
);

const SHA256_BYTES = 32;

/** SHA-256 of the parts in a row, 32 bytes. One part is hashed without a copy. */
export function sha256(...parts: Uint8Array[]): Uint8Array {
  const only = parts[0];
  const digest = new Uint8Array(SHA256_BYTES);
  sha256Into(parts.length === 1 && only ? only : Buffer.concat(parts), digest, 0);
  return digest;
}

/** Writes the SHA-256 of `data` to `target` from `at` on. By way of a string, 0.5 µs: as a Buffer the digest takes 1. */
export function sha256Into(data: Uint8Array, target: Uint8Array, at: number): void {
  const digest = hash('sha256', data, 'binary');
  for (let i = 0; i < SHA256_BYTES; i++) target[at + i] = digest.charCodeAt(i);
}

/** An incremental SHA-256. */
export type Sha256 = { update(piece: Uint8Array): void; digest(): Uint8Array };

/** Creates an incremental SHA-256. */
export function createSha256(): Sha256 {
  const state = createHash('sha256');
  return { update: (piece) => void state.update(piece), digest: () => plain(state.digest()) };
}

/** HMAC-SHA-256 (RFC 2104), 32 bytes. */
export function hmacSha256(key: Uint8Array, data: Uint8Array): Uint8Array {
  return plain(createHmac('sha256', key).update(data).digest());
}

const HMAC_BLOCK_BYTES = 64;

/**
 * The same in lower-case hex. With a key of at most a block by two hashes (RFC 2104, section 2): 1.7 µs, by createHmac
 * 2.2 µs and a native object that the garbage collector has to finalise.
 */
export function hmacSha256Hex(key: Uint8Array, data: Uint8Array): string {
  if (key.length > HMAC_BLOCK_BYTES) return encodeHex(hmacSha256(key, data));
  const inner = Buffer.allocUnsafe(HMAC_BLOCK_BYTES + data.length);
  const outer = Buffer.allocUnsafe(HMAC_BLOCK_BYTES + 32);
  for (let i = 0; i < HMAC_BLOCK_BYTES; i++) {
    const byte = key[i] ?? 0;
    inner[i] = byte ^ 0x36;
    outer[i] = byte ^ 0x5c;
  }
  inner.set(data, HMAC_BLOCK_BYTES);
  outer.write(hash('sha256', inner, 'hex'), HMAC_BLOCK_BYTES, 'hex');
  return hash('sha256', outer, 'hex');
}

/** Whether two byte strings are equal. Not in constant time: for public values only. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && Buffer.compare(a, b) === 0;
}

/** Whether `signature` (DER) over `data` is by this ECDSA P-256 key (SPKI, DER). A key or signature of another form is false. */
export async function verifyEcdsaP256Sha256(
  spki: Uint8Array,
  data: Uint8Array,
  signature: Uint8Array,
): Promise<boolean> {
  const found = findPublicKey(spki);
  return found?.kind === 'prime256v1' && verifyOrFalse('sha256', data, found.key, signature);
}

/** Whether `signature` (64 bytes) over `data` is by this Ed25519 key (32 raw bytes, or SPKI in DER). Anything malformed is false. */
export async function verifyEd25519(
  rawOrSpki: Uint8Array,
  data: Uint8Array,
  signature: Uint8Array,
): Promise<boolean> {
  const found = findPublicKey(rawOrSpki.length === 32 ? ed25519Spki(rawOrSpki) : rawOrSpki);
  if (found?.kind !== 'ed25519' || signature.length !== 64) return false;
  return verifyOrFalse(null, data, found.key, signature);
}

/** SubjectPublicKeyInfo (DER, 44 bytes) of a raw 32-byte Ed25519 key. */
export function ed25519Spki(raw: Uint8Array): Uint8Array {
  return plain(Buffer.concat([ED25519_SPKI_PREFIX, raw]));
}

/** UTF-8; a lone surrogate becomes U+FFFD. */
export function encodeUtf8(text: string): Uint8Array {
  return plain(Buffer.from(text));
}

/** Lower-case hex. */
export function encodeHex(bytes: Uint8Array): string {
  return view(bytes).toString('hex');
}

/** Bytes of lower-case hex; unspecified bytes for other text. */
export function decodeHex(text: string): Uint8Array {
  return plain(Buffer.from(text, 'hex'));
}

/** Standard base64 with padding (RFC 4648, section 4). */
export function encodeBase64(bytes: Uint8Array): string {
  return view(bytes).toString('base64');
}

/** Bytes of standard base64; for other text, bytes with another base64. */
export function decodeBase64(text: string): Uint8Array {
  return plain(Buffer.from(text, 'base64'));
}

/**
 * The same bytes as a plain Uint8Array: a Buffer's `slice` shares memory, and proofs must not depend on which one
 * they hold. Short ones are parts of a pool, so their `buffer` holds others too.
 */
function plain({ buffer, byteOffset, byteLength }: Buffer): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/**
 * A Buffer of the same bytes. Short ones are copied: V8 keeps them on its heap, and moving one away for its `buffer` makes
 * the base64 of a hash take 0.42 µs instead of 0.26.
 */
function view(bytes: Uint8Array): Buffer {
  if (bytes.length <= 64) return Buffer.from(bytes);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** A public key, and its curve or else its type. */
type PublicKey = { readonly key: KeyObject; readonly kind: string | undefined };

/** The last keys by their SPKI in base64: parsing one takes longer than verifying a signature with it. */
const publicKeys = new Map<string, PublicKey | undefined>();
const MAX_PUBLIC_KEYS = 32;

function findPublicKey(spki: Uint8Array): PublicKey | undefined {
  const name = encodeBase64(spki);
  if (publicKeys.has(name)) return publicKeys.get(name);
  const [oldest] = publicKeys.size >= MAX_PUBLIC_KEYS ? publicKeys.keys() : [];
  if (oldest !== undefined) publicKeys.delete(oldest);
  const found = parsePublicKey(spki);
  publicKeys.set(name, found);
  return found;
}

function parsePublicKey(spki: Uint8Array): PublicKey | undefined {
  try {
    const key = createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' });
    const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key;
    return { key, kind: type === 'ec' ? details?.namedCurve : type };
  } catch {
    return undefined;
  }
}

function verifyOrFalse(
  algorithm: string | null,
  data: Uint8Array,
  key: KeyObject,
  signature: Uint8Array,
): boolean {
  try {
    return verify(algorithm, data, key, signature);
  } catch {
    return false;
  }
}
