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
 * The key that hashes these secrets, derived by HKDF from the admin token, or from the client secret of the identity
 * provider where there is none: after it was changed, no stored session is found.
 */
export function deriveSessionKey(secret: string): KeyObject {
  const bytes = hkdfSync('sha256', secret, '', 'attestation-service/v1/session', KEY_BYTES);
  return createSecretKey(Buffer.from(bytes));
}

/**
 * What a secret is for. Sessions of people are hashed apart, because earlier versions would take one for the operator's.
 */
type TokenUse = 'session' | 'person' | 'link' | 'invitation' | 'state' | 'nonce' | 'verifier';

/** Hashes a secret for storage: HMAC-SHA-256 over its use and itself, 32 bytes. */
export function hashSessionToken(key: KeyObject, use: TokenUse, token: string): Uint8Array {
  return createHmac('sha256', key).update(`${use}\n${token}`).digest();
}

/** The hashes under which the session of a cookie may be stored: the operator's or a project's, or that of a person. */
export function sessionHashes(key: KeyObject, cookie: string): Uint8Array[] {
  return [hashSessionToken(key, 'session', cookie), hashSessionToken(key, 'person', cookie)];
}
