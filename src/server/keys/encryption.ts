import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { KeyRing } from './key-ring.js';

const ALGORITHM = 'aes-256-gcm';
const VERSION = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Encrypts a secret for storage: AES-256-GCM under the first key of a ring derived for `encryption`, with a random
 * nonce. The bytes contain the key's id, so that they can be decrypted after a rotation.
 *
 * @param context the id of the secret's owner; decryption fails with another context
 */
export function encryptSecret(keys: KeyRing, secret: string, context: string): Uint8Array {
  const [{ id, key }] = keys;
  const header = Buffer.concat([Buffer.from([VERSION, id.length]), Buffer.from(id, 'latin1')]);
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, key, nonce).setAAD(associated(header, context));
  const encrypted = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
  return Buffer.concat([header, nonce, encrypted, cipher.getAuthTag()]);
}

/** Decrypts the bytes of `encryptSecret`. Throws if the ring lacks the key, or the bytes or the context differ. */
export function decryptSecret(keys: KeyRing, stored: Uint8Array, context: string): string {
  const bytes = Buffer.from(stored);
  const headerEnd = 2 + (bytes[1] ?? 0);
  if (bytes[0] !== VERSION || bytes.length < headerEnd + NONCE_BYTES + TAG_BYTES) {
    throw new Error('an encrypted secret is not in a form that this version knows');
  }
  const id = bytes.toString('latin1', 2, headerEnd);
  const named = keys.find((candidate) => candidate.id === id);
  if (named === undefined) throw new Error(`SECRET_KEY lacks the key ${id}, which a stored secret is under`);
  const nonceEnd = headerEnd + NONCE_BYTES;
  const decipher = createDecipheriv(ALGORITHM, named.key, bytes.subarray(headerEnd, nonceEnd))
    .setAAD(associated(bytes.subarray(0, headerEnd), context))
    .setAuthTag(bytes.subarray(-TAG_BYTES));
  const start = decipher.update(bytes.subarray(nonceEnd, -TAG_BYTES));
  return Buffer.concat([start, decipher.final()]).toString('utf8');
}

function associated(header: Buffer, context: string): Buffer {
  return Buffer.concat([header, Buffer.from(context, 'utf8')]);
}
