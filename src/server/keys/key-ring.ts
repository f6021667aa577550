import { createHmac, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto';

/**
 * A secret key of 32 bytes and its id, which is stored with everything made under it. A KeyObject never appears in logs
 * or JSON.
 */
type NamedKey = { readonly id: string; readonly key: KeyObject };

/** Keys in rotation: new data is made under the first, existing data is read with any. */
export type KeyRing = readonly [NamedKey, ...NamedKey[]];

/** The purpose of a derived key. Derived keys reveal nothing of each other. */
type KeyPurpose = 'api-key' | 'cursor' | 'idempotency' | 'encryption' | 'fingerprint';

const KEY_BYTES = 32;
const KEY_ID = /^[A-Za-z0-9_-]{1,32}$/;
const MAX_KEYS = 16;

/**
 * Parses `id:base64` entries separated by commas, 32 bytes each in standard base64, the current key first. Throws an
 * Error that names the position of the wrong entry and never quotes it.
 */
export function parseKeyRing(text: string): KeyRing {
  const [first, ...rest] = text
    .split(',', MAX_KEYS + 1)
    .map((entry, index) => parseEntry(entry.trim(), index + 1));
  if (rest.length >= MAX_KEYS) throw new Error(`more than ${MAX_KEYS} keys`);
  const ring: KeyRing = [first!, ...rest];
  const repeated = ring.findIndex(({ id }, index) => ring.findIndex((other) => other.id === id) !== index);
  if (repeated !== -1) throw new Error(`key ${repeated + 1} has the id of another`);
  return ring;
}

/** Formats one key as `parseKeyRing` reads it. The text is a secret. */
export function formatSecretKey(id: string, bytes: Uint8Array): string {
  return `${id}:${Buffer.from(bytes).toString('base64')}`;
}

/** Derives the key of a purpose: HKDF-SHA-256 (RFC 5869), no salt, 32 bytes. */
export function deriveKey({ key }: NamedKey, purpose: KeyPurpose): KeyObject {
  const bytes = hkdfSync('sha256', key, '', `attestation-service/v1/${purpose}`, KEY_BYTES);
  return createSecretKey(Buffer.from(bytes));
}

/** Derives the keys of a whole ring for one purpose, in the ring's order. */
export function deriveKeyRing(ring: KeyRing, purpose: KeyPurpose): KeyRing {
  const [first, ...rest] = ring;
  const derive = (named: NamedKey) => ({ id: named.id, key: deriveKey(named, purpose) });
  return [derive(first), ...rest.map(derive)];
}

/**
 * Fingerprint of a key: 32 bytes derived by HKDF for that purpose. Reveals neither the key nor its other derived keys.
 */
export function secretKeyFingerprint(named: NamedKey): Uint8Array {
  return deriveKey(named, 'fingerprint').export();
}

/**
 * Hashes an API key for storage: HMAC-SHA-256 under each key of a ring derived for `api-key`, 32 bytes each, in the
 * ring's order. The first is stored; a look-up accepts any.
 */
export function hmacApiKey(keys: KeyRing, apiKey: string): [Uint8Array, ...Uint8Array[]] {
  const [first, ...rest] = keys;
  const hmac = ({ key }: NamedKey) => createHmac('sha256', key).update(apiKey, 'utf8').digest();
  return [hmac(first), ...rest.map(hmac)];
}

function parseEntry(entry: string, position: number): NamedKey {
  const colon = entry.indexOf(':');
  const id = entry.slice(0, Math.max(colon, 0));
  const encoded = entry.slice(colon + 1);
  if (!KEY_ID.test(id)) {
    throw new Error(
      `key ${position} does not start with an id of 1 to 32 letters, digits, "_" or "-" and a colon`,
    );
  }
  const bytes = Buffer.from(encoded, 'base64');
  if (bytes.length !== KEY_BYTES || bytes.toString('base64') !== encoded) {
    throw new Error(`key ${position} is not base64 of ${KEY_BYTES} bytes`);
  }
  return { id, key: createSecretKey(bytes) };
}
