/**
 * The cookies of the dashboard (RFC 6265): of this host only, out of the reach of scripts, sent with requests of its own site
 * only. `session` is a session, `sign-in` a sign-in at the identity provider that has begun.
 */
type CookieUse = 'session' | 'sign-in';

const ATTRIBUTES = 'Path=/; HttpOnly; SameSite=Strict';

/** Over https the prefix makes browsers refuse the cookie from other hosts of the domain and without Secure. */
function nameOf(use: CookieUse, isSecure: boolean): string {
  return isSecure ? `__Host-attest-${use}` : `attest-${use}`;
}

/** The `Set-Cookie` value that keeps a secret for so long. */
export function sessionCookie(
  secret: string,
  { isSecure, maxAgeSeconds, use = 'session' }: { isSecure: boolean; maxAgeSeconds: number; use?: CookieUse },
): string {
  const cookie = `${nameOf(use, isSecure)}=${secret}; ${ATTRIBUTES}; Max-Age=${maxAgeSeconds}`;
  return isSecure ? `${cookie}; Secure` : cookie;
}

/** The `Set-Cookie` value that ends a session. */
export function clearedSessionCookie(isSecure: boolean): string {
  return sessionCookie('', { isSecure, maxAgeSeconds: 0 });
}

/** The secret in a `Cookie` header. Undefined if it is missing, or there more than once. */
export function readSessionCookie(
  header: string | undefined,
  isSecure: boolean,
  use: CookieUse = 'session',
): string | undefined {
  if (header === undefined) return undefined;
  const start = `${nameOf(use, isSecure)}=`;
  const found = header
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(start));
  return found.length === 1 ? found[0]?.slice(start.length) : undefined;
}
