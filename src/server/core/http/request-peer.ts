import type { FastifyInstance, FastifyRequest } from 'fastify';

declare module 'fastify' {
  interface FastifyRequest {
    /** The address or network that the client counts for; undefined if it comes through a trusted proxy. */
    peer?: string | undefined;
  }
}

/** Sets `request.peer` of all requests of a scope. */
export function tellPeers(
  scope: FastifyInstance,
  findPeer: (request: FastifyRequest) => string | undefined,
): void {
  scope.addHook('onRequest', async (request) => {
    request.peer = findPeer(request);
  });
}
