import { hash } from 'node:crypto';

/** A strong entity tag (RFC 9110, 8.8.3) over the bytes of a body. */
export function etagOf(body: Uint8Array): string {
  return `"${hash('sha256', body, 'base64url')}"`;
}

/** Whether `If-None-Match` names the tag, so that 304 answers it; weak comparison, as RFC 9110, 13.1.2 wants. */
export function isNoneMatch(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  if (header.trim() === '*') return true;
  return header.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag);
}
