import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Throws what listening on the address would throw, for example EADDRINUSE. Listens for a moment; port 0 is always
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
