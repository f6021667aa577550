import { createServer } from 'node:http';
import type { Test } from 'tap';
import { listen } from '../../support/servers/rpc-server.js';
import { clientOf } from '../clients.js';

/** A client of a server that answers nothing, and how often it was called. */
export async function serveNothing(t: Test) {
  let calls = 0;
  const server = createServer((_, response) => {
    calls++;
    response.writeHead(500).end();
  });
  const { client } = clientOf(await listen(t, server), { maxRetries: 0 });
  return { client, calls: () => calls };
}
