import { once } from 'node:events';
import { createServer } from 'node:net';

/** Throws what listening would throw, EADDRINUSE for a port that is taken, before anything else is started for it. */
export async function assertPortFree(address: { host: string; port: number }): Promise<void> {
  if (address.port === 0) return;
  const server = createServer();
  server.listen(address);
  await once(server, 'listening');
  server.close();
  await once(server, 'close');
}
