import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';

/** Starts listening; port 0 picks a free port. Rejects if the address cannot be bound. @returns the port */
export async function listen(
  server: Server,
  { host, port }: { host: string; port: number },
): Promise<{ port: number }> {
  server.listen({ host, port });
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port };
}
