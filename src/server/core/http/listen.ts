import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';

/** Starts listening; port 0 picks a free port. Rejects if the address cannot be bound. @returns the port */
export async function listen(
  server: Server,
  { host, port }: { host: string; port: number },
): Promise<{ port: number }> {
  server.listen({ host, port });
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port };
}

/**
 * Throws the error of listening on the address, for example EADDRINUSE. Listens for a moment; port 0 is always
 * free.
 */
export async function assertPortFree(address: { host: string; port: number }): Promise<void> {
  if (address.port === 0) return;
  const server = createServer();
  server.listen(address);
  await once(server, 'listening');
  server.close();
  await once(server, 'close');
}
