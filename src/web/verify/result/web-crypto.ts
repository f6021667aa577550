/** A known signature key (RFC 8032, test 1) in SPKI: whether browsers know Ed25519 shows when they import it. */
const ED25519_SPKI = 'MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=';

/**
 * Why this browser cannot check signatures, a sentence; undefined if it can. Browsers give cryptography to pages from https
 * and from files only.
 */
export async function findCryptoProblem(): Promise<string | undefined> {
  if (globalThis.crypto?.subtle === undefined) {
    return 'Browsers let pages check signatures over https only. Open this page by its https address, or use the page as a file.';
  }
  try {
    const spki = Uint8Array.from(atob(ED25519_SPKI), (character) => character.charCodeAt(0));
    await crypto.subtle.importKey('spki', spki, { name: 'Ed25519' }, false, ['verify']);
    return undefined;
  } catch {
    return 'This browser cannot check Ed25519 signatures, which logs are signed with. Update it: Chrome and Edge can from version 137, Firefox from 129, Safari from 17.';
  }
}
