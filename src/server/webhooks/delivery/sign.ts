import { createHmac } from 'node:crypto';

/** The signed content: event id, send time in Unix seconds, and the exact body. */
type Signed = { id: string; timestamp: number; body: string };

/** The event id of a delivery's request, and the time of its signature in Unix milliseconds. */
type Sent = { id: string; atMs: number };

const FIXED = { 'content-type': 'application/json', 'user-agent': 'attestation-service/1 (webhooks)' };

const PREFIX = 'whsec_';
const MIN_KEY_BYTES = 24;
const MAX_KEY_BYTES = 64;

/** Decodes a secret's HMAC key: canonical base64 after `whsec_`. Returns undefined if it is malformed. */
export function findSecretBytes(secret: string): Uint8Array | undefined {
  const encoded = secret.slice(PREFIX.length);
  const bytes = Buffer.from(encoded, 'base64');
  const isCanonical = secret.startsWith(PREFIX) && bytes.toString('base64') === encoded;
  return isCanonical && bytes.length >= MIN_KEY_BYTES && bytes.length <= MAX_KEY_BYTES ? bytes : undefined;
}

/** Encodes a key of 24 to 64 bytes as a `whsec_` secret. */
export function formatSecret(bytes: Uint8Array): string {
  return PREFIX + Buffer.from(bytes).toString('base64');
}

/**
 * The signature headers of a delivery, one signature per key: `Service-Signature`, and those of Standard Webhooks over
 * `<id>.<timestamp>.<body>`.
 */
export function signatureHeaders(keys: readonly Uint8Array[], signed: Signed): Record<string, string> {
  const { id, timestamp, body } = signed;
  const mac = (key: Uint8Array, text: string) => createHmac('sha256', key).update(text);
  return headersOf(signed, {
    own: keys.map((key) => mac(key, `${timestamp}.${body}`).digest('hex')),
    standard: keys.map((key) => mac(key, `${id}.${timestamp}.${body}`).digest('base64')),
  });
}

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

/** The same headers with `…` in the place of the signatures, which a receiver would accept again with the body. */
function unsignedHeaders(signed: Omit<Signed, 'body'>): Record<string, string> {
  return headersOf(signed, { own: ['…'], standard: ['…'] });
}

function headersOf(
  { id, timestamp }: Omit<Signed, 'body'>,
  { own, standard }: { own: readonly string[]; standard: readonly string[] },
): Record<string, string> {
  return {
    'service-signature': [`t=${timestamp}`, ...own.map((hex) => `v1=${hex}`)].join(','),
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': standard.map((base64) => `v1,${base64}`).join(' '),
  };
}
