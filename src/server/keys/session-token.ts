import { createHmac, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto';

const TOKEN_BYTES = 32;
const KEY_BYTES = 32;
const TOKEN_FORM = /^[A-Za-z0-9_-]{43}$/;

/** Makes the secret of a session or sign-in link: 256 random bits in base64url. */
export function newSessionToken(randomBytes: (size: number) => Uint8Array): string {
  return Buffer.from(randomBytes(TOKEN_BYTES)).toString('base64url');
}

/** Whether a text has the form of such a secret. */
export function isSessionToken(text: string): boolean {
  return TOKEN_FORM.test(text);
}

/**
 * The key that hashes these secrets, derived from the admin token by HKDF: without it, and after it was changed, no stored
 * session is found.
 */
export function deriveSessionKey(adminToken: string): KeyObject {
  const bytes = hkdfSync('sha256', adminToken, '', 'attestation-service/v1/session', KEY_BYTES);
  return createSecretKey(Buffer.from(bytes));
}

/** Hashes a secret for storage: HMAC-SHA-256 over its use and itself, 32 bytes. */
export function hashSessionToken(key: KeyObject, use: 'session' | 'link', token: string): Uint8Array {
  return createHmac('sha256', key).update(`${use}\n${token}`).digest();
}
