/** A proxy for https, as companies have one: it makes tunnels and reads nothing of what goes through. */
import { createServer } from 'node:http';
import { connect } from 'node:net';
import type { Test } from 'tap';
import { listen } from '../servers/rpc-server.js';

/** `status` other than 200 refuses every tunnel. */
export type ConnectProxy = { url: string; tunnels: string[] };

/** Serves until the test ends. */
export async function startConnectProxy(t: Test, status = 200): Promise<ConnectProxy> {
  const tunnels: string[] = [];
  const server = createServer((_, response) => response.writeHead(405).end());
  server.on('connect', ({ url = '' }, client, head) => {
    tunnels.push(url);
    if (status !== 200) return void client.end(`HTTP/1.1 ${status} No\r\n\r\n`);
    const { hostname, port } = new URL(`http://${url}`);
    const upstream = connect(Number(port), hostname, () => {
      client.write('HTTP/1.1 200 OK\r\n\r\n');
      upstream.write(head);
      upstream.pipe(client).pipe(upstream);
    });
    for (const socket of [client, upstream]) {
      socket.on('error', () => {});
      socket.on('close', () => {
        client.destroy();
        upstream.destroy();
      });
    }
  });
  return { url: await listen(t, server), tunnels };
}
