import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';

/** Has a server listen; a port of 0 picks a free one. Rejects when the address cannot be listened on. */
export async function listen(
  server: Server,
  { host, port }: { host: string; port: number },
): Promise<{ port: number }> {
  server.listen({ host, port });
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port };
}
