/** An event as the service delivers it, its signatures, and their verification. */
import { randomBytes } from 'node:crypto';
import { type VerifyWebhookOptions, verifyWebhook, type WebhookHeaders } from '../../../src/client/client.js';
import {
  findSecretBytes,
  formatSecret,
  signatureHeaders,
} from '../../../src/server/webhooks/delivery/sign.js';

export const SECRET = formatSecret(randomBytes(32));
export const OTHER = formatSecret(randomBytes(24));
export const NOW = new Date('2026-03-01T12:00:00Z');
export const AT = NOW.getTime() / 1000;
export const EVENT = {
  id: 'evt_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T',
  type: 'attestation.witnessed',
  created: '2026-03-01T11:59:58.123Z',
  data: { submission_id: 'sub_1', bundle_url: 'https://api.example.com/v1/attestations/sub_1/bundle' },
};
export const BODY = JSON.stringify(EVENT);

type Signing = { secrets?: string[]; timestamp?: number; body?: string };

/** The headers of a delivery as the service sends them. */
export function signed({
  secrets = [SECRET],
  timestamp = AT,
  body = BODY,
}: Signing = {}): Record<string, string> {
  const keys = secrets.map((secret) => findSecretBytes(secret) as Uint8Array);
  return { 'content-type': 'application/json', ...signatureHeaders(keys, { id: EVENT.id, timestamp, body }) };
}

/** The headers of a delivery whose names match. */
export function only(names: RegExp, headers = signed()): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => names.test(name)));
}

/** The headers of the service's own signature. */
export const own = () => only(/^service-/);

/** The headers of a signature of Standard Webhooks. */
export const standard = () => only(/^webhook-/);

/** Verifies at the time of the event. */
export function verify(
  headers: WebhookHeaders,
  body: string | Uint8Array = BODY,
  options?: VerifyWebhookOptions,
) {
  return verifyWebhook(body, headers, SECRET, { now: NOW, ...options });
}
