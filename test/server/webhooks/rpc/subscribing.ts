/** Webhook subscriptions of a test, by REST. */
import type { JsonObject } from '@bufbuild/protobuf';
import type { App } from '../../../support/app.js';
import type { TestKey } from '../../../support/calling/test-keys.js';

/** An address that nobody listens on. */
export const URL = 'http://127.0.0.1:9/hook';

/** A secret as the service makes it. */
export const SECRET = /^whsec_[A-Za-z0-9+/]{43}=$/;

export type Subscription = JsonObject & { id: string; secret?: string };

/** Creates a subscription; the members of `more` replace or add to those of the request. */
export async function subscribe(app: App, { key }: TestKey, more: JsonObject = {}): Promise<Subscription> {
  const body = { url: URL, events: ['attestation.witnessed'], ...more };
  const { status, json } = await app.rest('/v1/webhooks', { apiKey: key, body });
  if (status !== 201) throw new Error(JSON.stringify(json));
  app.recorder.secrets.add(String(json.secret));
  return json as Subscription;
}

/** The error of a request that is rejected. */
export async function refusal(app: App, { key }: TestKey, path: string, body: JsonObject, method = 'POST') {
  const { status, json } = await app.rest(path, { apiKey: key, body, method });
  const { code, message, details } = json.error as JsonObject;
  return { status, code, message, details };
}
