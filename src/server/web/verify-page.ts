import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { handleOtherMethods, type PublicResponse, sendPublic } from '../core/http/public-response.js';
import { openPageFiles } from './page-files.js';
import { confinePage } from './page-policy.js';

/** Adds the page that verifies proofs in the browser, at `path` and a slash. */
export function verifyPageRoutes(app: FastifyInstance, { path }: { path: string }): void {
  const files = openPageFiles('verify');
  const page = (route: string, find: (request: FastifyRequest) => PublicResponse | undefined) => {
    app.get(route, async (request, reply) => {
      const found = find(request);
      return found === undefined ? notFound(reply) : sendPublic(request, confinePage(reply), found);
    });
    handleOtherMethods(app, route);
  };
  page(`${path}/`, () => files.readDocument());
  page(`${path}/assets/:name`, ({ params }) => files.readAsset((params as { name: string }).name));
}

function notFound(reply: FastifyReply): FastifyReply {
  return reply
    .code(404)
    .header('cache-control', 'no-store')
    .type('text/plain; charset=utf-8')
    .send('not found\n');
}
