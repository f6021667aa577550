// A Connect server with handlers of the test's own, over real sockets.
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createHttps, Server as HttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { Code, ConnectError, type ConnectRouter } from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import type { Test } from 'tap';
import { ErrorDetailSchema } from '../../../gen/attestation/v1/errors_pb.js';

/** Serves until the test ends, by https if `tls` is given. @returns the base address, and the requests as they came */
export async function serveRpc(
  t: Test,
  routes: (router: ConnectRouter) => void,
  tls?: { key: Buffer; cert: Buffer },
): Promise<{ baseUrl: string; requests: IncomingMessage[] }> {
  const requests: IncomingMessage[] = [];
  const handle = connectNodeAdapter({ routes });
  const listener: typeof handle = (request, response) => {
    requests.push(request as IncomingMessage);
    handle(request, response);
  };
  const server = tls === undefined ? createServer(listener) : createHttps(tls, listener);
  return { baseUrl: await listen(t, server), requests };
}

/** Listens on a free port of 127.0.0.1 until the test ends. @returns the base address */
export async function listen(t: Test, server: Server | HttpsServer): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const scheme = server instanceof HttpsServer ? 'https' : 'http';
  return `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** An error as the service puts it on Connect: with its dotted code as a detail. */
export function serviceError(
  code: string,
  connectCode: Code = Code.Unavailable,
  headers: Record<string, string> = {},
): ConnectError {
  const value = { code, details: { reason: 'test' }, requestId: 'req_1' };
  return new ConnectError(`because of ${code}`, connectCode, headers, [{ desc: ErrorDetailSchema, value }]);
}
