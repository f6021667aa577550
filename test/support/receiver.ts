/** An endpoint that webhooks are sent to, and that remembers what it got. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { createServer as createSecureServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Test } from 'tap';

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
  /** Ends every connection; nobody listens any more. */
  close: () => Promise<void>;
};

const takeIt: Behaviour = (response) => void response.writeHead(204).end();

/** Answers with a status, and a body and headers if wanted. */
export function answering(status: number, body = '', headers: Record<string, string> = {}): Behaviour {
  return (response) => void response.writeHead(status, headers).end(body);
}

/** Starts an endpoint on a free port of 127.0.0.1, until the test ends; https with `tls`. */
export async function startReceiver(
  t: Pick<Test, 'teardown'>,
  options: { tls?: ServerOptions; port?: number } = {},
): Promise<Receiver> {
  const { tls, port = 0 } = options;
  let behave = takeIt;
  const received: Received[] = [];
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
    close,
  };
}
