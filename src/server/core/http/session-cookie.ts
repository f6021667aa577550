/** The session cookie (RFC 6265): of this host only, out of the reach of scripts, sent with requests of its own site only. */
const ATTRIBUTES = 'Path=/; HttpOnly; SameSite=Strict';

/** Over https the prefix makes browsers refuse the cookie from other hosts of the domain and without Secure. */
function nameOf(isSecure: boolean): string {
  return isSecure ? '__Host-attest-session' : 'attest-session';
}

/** The `Set-Cookie` value that starts a session. */
export function sessionCookie(token: string, isSecure: boolean, maxAgeSeconds: number): string {
  const cookie = `${nameOf(isSecure)}=${token}; ${ATTRIBUTES}; Max-Age=${maxAgeSeconds}`;
  return isSecure ? `${cookie}; Secure` : cookie;
}

/** The `Set-Cookie` value that ends it. */
export function clearedSessionCookie(isSecure: boolean): string {
  return sessionCookie('', isSecure, 0);
}

/** The session's secret in a `Cookie` header. Undefined if it is missing, or there more than once. */
export function readSessionCookie(header: string | undefined, isSecure: boolean): string | undefined {
  if (header === undefined) return undefined;
  const start = `${nameOf(isSecure)}=`;
  const found = header
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(start));
  return found.length === 1 ? found[0]?.slice(start.length) : undefined;
}
