/** A receiver of webhooks that notes every delivery, and fails in each way that such a server can. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { ShutdownHooks } from '../../../src/server/core/shutdown.js';
import { serve } from '../../support/witnesses/openssl-tsa.js';
import type { RecordWriter } from '../record.js';

export type EndpointMood = 'takes' | 'fails' | 'hangs' | 'is slow' | 'resets';

export type Endpoint = {
  mood: EndpointMood;
  /** Where the deliveries of that owner go. */
  urlFor(owner: string): string;
  /** Tells it the secret that signs them. */
  trust(owner: string, secret: string): void;
};

const SLOW_MS = 3_000;

/** Listens until `hooks`. */
export async function openEndpoint(record: RecordWriter, hooks: ShutdownHooks): Promise<Endpoint> {
  const secrets = new Map<string, string>();
  const server = await serve(async (request, response) => {
    try {
      const body = await buffer(request);
      const owner = (request.url ?? '').slice(1);
      const { mood } = endpoint;
      if (mood === 'is slow') await new Promise((resolve) => setTimeout(resolve, SLOW_MS).unref());
      const event = JSON.parse(body.toString()) as {
        id: string;
        type: string;
        data: { submission_id: string };
      };
      record.write({
        what: 'delivered',
        owner,
        event: event.id,
        type: event.type,
        submission: event.data.submission_id,
        taken: mood === 'takes' || mood === 'is slow',
        genuine: isGenuine(request.headers, body, secrets.get(owner) ?? ''),
      });
      respond(mood, response);
    } catch {
      response.destroy();
    }
  });
  hooks.add(server.close);
  const endpoint: Endpoint = {
    mood: 'takes',
    urlFor: (owner) => `${server.url}${owner}`,
    trust: (owner, secret) => void secrets.set(owner, secret),
  };
  return endpoint;
}

function respond(mood: EndpointMood, response: ServerResponse): void {
  if (mood === 'hangs') return;
  if (mood === 'resets') response.destroy();
  else response.writeHead(mood === 'fails' ? 500 : 204).end();
}

/** Standard Webhooks: HMAC-SHA-256 over id, time and body, under the bytes that the secret is the base64 of. */
function isGenuine(headers: IncomingHttpHeaders, body: Buffer, secret: string): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': signatures } = headers;
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const wanted = createHmac('sha256', key).update(`${id}.${time}.`).update(body).digest();
  return String(signatures)
    .split(' ')
    .some((signature) => {
      const given = Buffer.from(signature.replace(/^v1,/, ''), 'base64');
      return given.length === wanted.length && timingSafeEqual(given, wanted);
    });
}
