import { createHmac } from 'node:crypto';

/** What is signed: the event's id, when it is sent, in Unix seconds, and the body's exact bytes. */
export type Signed = { id: string; timestamp: number; body: string };

const PREFIX = 'whsec_';
const MIN_KEY_BYTES = 24;
const MAX_KEY_BYTES = 64;

/** The HMAC key of a secret: the bytes whose canonical base64 follows `whsec_`; undefined when it is no such secret. */
export function findSecretBytes(secret: string): Uint8Array | undefined {
  const encoded = secret.slice(PREFIX.length);
  const bytes = Buffer.from(encoded, 'base64');
  const isCanonical = secret.startsWith(PREFIX) && bytes.toString('base64') === encoded;
  return isCanonical && bytes.length >= MIN_KEY_BYTES && bytes.length <= MAX_KEY_BYTES ? bytes : undefined;
}

/** A secret of 24 to 64 bytes as its receiver is shown it. */
export function formatSecret(bytes: Uint8Array): string {
  return PREFIX + Buffer.from(bytes).toString('base64');
}

/**
 * The headers that sign a delivery under each key: `Service-Signature`, and those of Standard Webhooks, whose signed
 * content is `<id>.<timestamp>.<body>`.
 */
export function signatureHeaders(keys: readonly Uint8Array[], signed: Signed): Record<string, string> {
  const { id, timestamp, body } = signed;
  const mac = (key: Uint8Array, text: string) => createHmac('sha256', key).update(text);
  const own = keys.map((key) => `v1=${mac(key, `${timestamp}.${body}`).digest('hex')}`);
  const standard = keys.map((key) => `v1,${mac(key, `${id}.${timestamp}.${body}`).digest('base64')}`);
  return {
    'service-signature': [`t=${timestamp}`, ...own].join(','),
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': standard.join(' '),
  };
}
