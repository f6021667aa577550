/** Deliveries that a test sends itself: the event, its secrets, a sender, and endpoints that speak no HTTP of their own. */
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import type { Test } from 'tap';
import { guardedConnector } from '../../../src/server/net/destination.js';
import {
  openWebhookSender,
  type SendDeps,
  type WebhookRequest,
} from '../../../src/server/webhooks/delivery/send.js';
import { findSecretBytes, formatSecret } from '../../../src/server/webhooks/delivery/sign.js';

/** The time of every sender, Unix milliseconds. */
export const NOW_MS = Math.floor(Date.now() / 1000) * 1000 + 250;
export const SECRETS = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)].map(formatSecret);
export const KEYS = SECRETS.map((secret) => findSecretBytes(secret) as Uint8Array);
export const EVENT = {
  id: 'evt_1',
  type: 'webhook.test',
  created: '2026-03-01T12:00:00.000Z',
  data: { webhook_id: 'whk_1' },
};

function requestOf(url: string): WebhookRequest {
  return { url, id: EVENT.id, body: JSON.stringify(EVENT), keys: KEYS, atMs: NOW_MS };
}

/** A sender that trusts this CA and resolves every name to this machine. */
export function senderOf(t: Test, { ca, ...deps }: Partial<SendDeps> & { ca?: string } = {}) {
  const connect = guardedConnector({
    allowInsecure: true,
    ...(ca && { ca }),
    resolve: async () => ['127.0.0.1'],
  });
  const { signal: aborting } = new AbortController();
  const { send, close } = openWebhookSender({ clock: () => NOW_MS, aborting, connect, ...deps });
  t.teardown(close);
  return (url: string) => send(requestOf(url));
}

/** Starts an endpoint that does with each connection what `serve` says. @returns its URL */
export async function startRaw(t: Test, serve: (socket: Socket) => void): Promise<string> {
  const server: Server = createServer((socket) => {
    socket.on('error', () => {});
    serve(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('it listens nowhere');
  return `http://127.0.0.1:${address.port}/`;
}
