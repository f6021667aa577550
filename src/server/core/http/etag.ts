import { hash } from 'node:crypto';

/** Returns a strong entity tag (RFC 9110, 8.8.3) of a body: a hash of its bytes, or of text that determines them. */
export function etagOf(body: Uint8Array | string): string {
  return `"${hash('sha256', body, 'base64url')}"`;
}

/** Returns whether `If-None-Match` matches the tag, so that the response is 304. Weak comparison (RFC 9110, 13.1.2). */
export function isNoneMatch(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  if (header.trim() === '*') return true;
  return header.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag);
}
