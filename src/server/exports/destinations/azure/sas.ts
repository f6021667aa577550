/** Shared access signatures: problems that show before a request, and removal from texts. */

/**
 * Explains why a shared access signature cannot serve an export; undefined if it may. A signature with a stored access
 * policy has some of its terms in the container.
 */
export function findSasProblem(token: string, nowMs: number): string | undefined {
  const terms = parseSas(token);
  if (terms === undefined || !terms.has('sig')) return 'sas_token is not a shared access signature';
  const expiry = terms.get('se');
  if (expiry !== null && Date.parse(expiry) <= nowMs)
    return `sas_token expired at ${expiry.slice(0, 40)}; replace it by a new one`;
  const permissions = terms.get('sp');
  const missing = permissions === null ? [] : ['r', 'w'].filter((letter) => !permissions.includes(letter));
  if (missing.length > 0)
    return `sas_token must permit to read, create and write (sp=rcw); it lacks ${missing.join(' and ')}`;
  if (terms.get('sr') === 'b') return 'sas_token must be of the container (sr=c), not of a blob';
  return undefined;
}

/** The token without the question mark that portals put before it. */
export function bareSas(token: string): string {
  return token.replace(/^\?/, '');
}

/** Removes a shared access signature from a text: whole, or its signature alone in any spelling. */
export function redactSas(text: string, token: string): string {
  const [, given = ''] = /(?:^|&)sig=([^&]*)/.exec(bareSas(token)) ?? [];
  const signature = decode(given);
  const encoded = encodeURIComponent(signature);
  const inLowerCase = encoded.replaceAll(/%../g, (byte) => byte.toLowerCase());
  return [bareSas(token), given, encoded, inLowerCase, signature]
    .filter((secret) => secret !== '')
    .reduce((redacted, secret) => redacted.replaceAll(secret, '[redacted]'), text);
}

/** Not as a form: a plus sign that is not encoded is one. */
function decode(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

function parseSas(token: string): URLSearchParams | undefined {
  return /^\??[A-Za-z0-9%=&+/:.,~_-]+$/.test(token) ? new URLSearchParams(bareSas(token)) : undefined;
}
