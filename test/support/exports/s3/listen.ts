/** A listener on a free port of 127.0.0.1 that can go away and come back. */
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createSecureServer, type ServerOptions } from 'node:https';
import { findFreePort } from '../../servers/free-port.js';

export type Listener = {
  url: string;
  /** Ends every connection; nobody listens any more. */
  close: () => Promise<void>;
  /** Listens again, on the same port. */
  reopen: () => Promise<void>;
};

/** Listens; by https with `tls`. */
export async function listen(handle: RequestListener, tls?: ServerOptions): Promise<Listener> {
  const server: Server = tls ? createSecureServer(tls, handle) : createServer(handle);
  const port = await findFreePort();
  const open = async () => {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  };
  await open();
  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    close: async () => {
      server.closeAllConnections();
      if (server.listening) await new Promise((resolve) => server.close(resolve));
    },
    reopen: open,
  };
}
