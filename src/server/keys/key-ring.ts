import { createHmac, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto';

/** A secret key of 32 bytes and the id that marks what was made under it. A KeyObject never shows in logs or JSON. */
export type NamedKey = { readonly id: string; readonly key: KeyObject };

/** Keys in rotation: the first is used for whatever is made now, all of them for what was made before. */
export type KeyRing = readonly [NamedKey, ...NamedKey[]];

/** What a sub-key is for; a key for one purpose tells nothing about those for others. */
export type KeyPurpose = 'api-key' | 'cursor' | 'idempotency' | 'encryption' | 'fingerprint';

const KEY_BYTES = 32;
const KEY_ID = /^[A-Za-z0-9_-]{1,32}$/;
const MAX_KEYS = 16;

/**
 * Reads `id:base64` entries separated by commas, each 32 bytes in standard base64, the current one first. Throws an
 * Error that says which entry is wrong and never quotes it.
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

/** The text of one key as `parseKeyRing` reads it: a secret. */
export function formatSecretKey(id: string, bytes: Uint8Array): string {
  return `${id}:${Buffer.from(bytes).toString('base64')}`;
}

/** The sub-key of a key for one purpose: HKDF-SHA-256 (RFC 5869), no salt, 32 bytes. */
export function deriveKey({ key }: NamedKey, purpose: KeyPurpose): KeyObject {
  const bytes = hkdfSync('sha256', key, '', `attestation-service/v1/${purpose}`, KEY_BYTES);
  return createSecretKey(Buffer.from(bytes));
}

/** The sub-keys of a whole ring for one purpose, in the ring's order. Made once, at start. */
export function deriveKeyRing(ring: KeyRing, purpose: KeyPurpose): KeyRing {
  const [first, ...rest] = ring;
  const derive = (named: NamedKey) => ({ id: named.id, key: deriveKey(named, purpose) });
  return [derive(first), ...rest.map(derive)];
}

/** What a key is known by without being told: a sub-key of its own, 32 bytes. Whoever has it learns nothing of the others. */
export function secretKeyFingerprint(named: NamedKey): Uint8Array {
  return deriveKey(named, 'fingerprint').export();
}

/**
 * What is stored of an API key: HMAC-SHA-256 under each key of a ring derived for `api-key`, 32 bytes each, in the
 * ring's order. New keys are stored under the first; a look-up accepts any.
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
