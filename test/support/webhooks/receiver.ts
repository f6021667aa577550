/** An endpoint that webhooks are sent to: checks who sent each delivery, and remembers what it got. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { createServer as createSecureServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import type { Test } from 'tap';
import { verifyWebhook } from '../../../src/client/webhook.js';

/** A request as it came. */
export type Received = { path: string; headers: IncomingHttpHeaders; body: string; event: ReceivedEvent };

export type ReceivedEvent = { id: string; type: string; created: string; data: Record<string, unknown> };

/** What the endpoint does with a request; answers 204 when left out. */
export type Behaviour = (response: ServerResponse, received: Received) => void;

export type Receiver = {
  url: string;
  received: Received[];
  /** How many requests it has under way, and had at most at a time. */
  open: { now: number; most: number };
  behave: (behaviour: Behaviour) => void;
  /**
   * Takes deliveries that this secret signed. One that is signed by no secret it was told, as our own library and the
   * independent one see it, fails the test.
   */
  trust: (secret: string) => void;
  /** Takes no more that this secret alone signed. */
  distrust: (secret: string) => void;
  /** Ends every connection; nobody listens any more. */
  close: () => Promise<void>;
};

const takeIt: Behaviour = (response) => void response.writeHead(204).end();

/** Answers with a status, and a body and headers if wanted. */
export function answering(status: number, body = '', headers: Record<string, string> = {}): Behaviour {
  return (response) => void response.writeHead(status, headers).end(body);
}

/** Whether a delivery is by this secret: what our own library says, and what the independent one does. */
export function verdicts(
  secret: string,
  { headers, body }: Pick<Received, 'headers' | 'body'>,
): [boolean, boolean] {
  return [
    holds(() => verifyWebhook(body, headers, secret)),
    holds(() => new StandardWebhook(secret).verify(body, headers as Record<string, string>)),
  ];
}

function holds(verify: () => unknown): boolean {
  try {
    verify();
    return true;
  } catch {
    return false;
  }
}

/** Starts an endpoint on a free port of 127.0.0.1, until the test ends; https with `tls`. */
export async function startReceiver(
  t: Pick<Test, 'teardown' | 'fail'>,
  options: { tls?: ServerOptions; port?: number } = {},
): Promise<Receiver> {
  const { tls, port = 0 } = options;
  let behave = takeIt;
  const received: Received[] = [];
  const trusted = new Set<string>();
  const open = { now: 0, most: 0 };
  const server = tls ? createSecureServer(tls) : createServer();
  server.on('request', (request, response: ServerResponse) => {
    open.now++;
    open.most = Math.max(open.most, open.now);
    response.on('close', () => void open.now--);
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      const { url: path = '', headers } = request;
      const one: Received = { path, headers, body, event: JSON.parse(body) as ReceivedEvent };
      received.push(one);
      const isGenuine = [...trusted].some((secret) => verdicts(secret, one).every((verdict) => verdict));
      if (!isGenuine)
        t.fail(`delivery ${one.event.id} is signed by none of ${trusted.size} secrets`, { headers });
      behave(response, one);
    });
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  t.teardown(close);
  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received,
    open,
    behave: (behaviour) => {
      behave = behaviour;
    },
    trust: (secret) => void trusted.add(secret),
    distrust: (secret) => void trusted.delete(secret),
    close,
  };
}
