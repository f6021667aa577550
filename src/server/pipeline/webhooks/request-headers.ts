import { signatureHeaders, unsignedHeaders } from './sign.js';

/** What a delivery's request is signed for, and when: Unix milliseconds. */
type Sent = { id: string; atMs: number };

const FIXED = { 'content-type': 'application/json', 'user-agent': 'attestation-service/1 (webhooks)' };

/** The headers of a delivery's request, signed with each of the HMAC keys. */
export function requestHeaders(
  keys: readonly Uint8Array[],
  { id, atMs, body }: Sent & { body: string },
): Record<string, string> {
  return { ...FIXED, ...signatureHeaders(keys, { id, timestamp: toSeconds(atMs), body }) };
}

/** The headers of a request that was sent, in order, with `…` in the place of each signature. */
export function shownHeaders({ id, atMs }: Sent): { name: string; value: string }[] {
  const headers = { ...FIXED, ...unsignedHeaders({ id, timestamp: toSeconds(atMs) }) };
  return Object.entries(headers).map(([name, value]) => ({ name, value }));
}

function toSeconds(ms: number): number {
  return Math.floor(ms / 1000);
}
