/** A proxy before a chain's node that holds single calls. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Test } from 'tap';
import type { Break } from '../../breaking/proxy.js';

export type RpcProxy = {
  url: string;
  /** Holds the next call of this method, before it reaches the node or after, for ever. Resolves when it is held. */
  holdNext(when: Break, method: string): Promise<void>;
};

/** Starts a proxy on a free port of 127.0.0.1, until the test ends. */
export async function startRpcProxy(t: Pick<Test, 'teardown'>, target: string): Promise<RpcProxy> {
  const traps: { when: Break; method: string; sprung: () => void }[] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await text(request);
    const { method } = JSON.parse(body) as { method: string };
    const index = traps.findIndex((trap) => trap.method === method);
    const [trap] = index < 0 ? [] : traps.splice(index, 1);
    if (trap?.when === 'before the request arrives') return trap.sprung();
    const headers = { 'content-type': 'application/json' };
    const answered = await fetch(target, { method: 'POST', headers, body });
    const result = await answered.text();
    if (trap !== undefined) return trap.sprung();
    response.writeHead(answered.status, headers).end(result);
  };
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    holdNext: (when, method) => new Promise((sprung) => traps.push({ when, method, sprung })),
  };
}
