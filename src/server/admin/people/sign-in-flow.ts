/**
 * A sign-in at the identity provider, from its start to the return of the browser. The browser keeps all of it in a cookie;
 * what the provider gets of it is derived from that, so that another browser cannot complete it.
 */
import type { KeyObject } from 'node:crypto';
import { hashSessionToken, isSessionToken, newSessionToken } from '../../keys/session-token.js';

/** The values that bind a sign-in to its browser, in base64url. */
export type SignInFlow = {
  /** Comes back in the query of the callback. */
  state: string;
  /** Comes back in the ID token. */
  nonce: string;
  /** Of PKCE (RFC 7636): its SHA-256 is sent at the start, itself with the code. */
  verifier: string;
  /** The secret of an invitation to accept with it. */
  invitation: string | undefined;
};

/** How long a browser has. */
export const FLOW_SECONDS = 600;

/** Begins a sign-in, by which the invitation is accepted if there is one. @returns the value of its cookie as well */
export function newFlow(
  key: KeyObject,
  { randomBytes, nowMs, invitation }: NewFlow,
): SignInFlow & { cookie: string } {
  const parts = [newSessionToken(randomBytes), Math.floor(nowMs / 1000), ...(invitation ? [invitation] : [])];
  const cookie = parts.join('.');
  return { cookie, ...flowOf(key, cookie, invitation) };
}

type NewFlow = {
  randomBytes: (size: number) => Uint8Array;
  nowMs: number;
  /** Its secret; undefined without one. */
  invitation: string | undefined;
};

/** The sign-in of a cookie. Undefined without one, or after ten minutes. The state proves that it was made here. */
export function readFlow(key: KeyObject, cookie: string | undefined, nowMs: number): SignInFlow | undefined {
  const [token = '', seconds = '', invitation, ...rest] = (cookie ?? '').split('.');
  if (!isSessionToken(token) || !/^\d{1,12}$/.test(seconds) || rest.length > 0) return undefined;
  if (invitation !== undefined && !isSessionToken(invitation)) return undefined;
  const ageSeconds = nowMs / 1000 - Number(seconds);
  return ageSeconds > FLOW_SECONDS || cookie === undefined ? undefined : flowOf(key, cookie, invitation);
}

function flowOf(key: KeyObject, cookie: string, invitation: string | undefined): SignInFlow {
  const derive = (use: 'state' | 'nonce' | 'verifier') =>
    Buffer.from(hashSessionToken(key, use, cookie)).toString('base64url');
  return { state: derive('state'), nonce: derive('nonce'), verifier: derive('verifier'), invitation };
}
