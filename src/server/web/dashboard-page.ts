import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { ApiError } from '../core/errors.js';
import { type PublicResponse, sendPublic } from '../core/http/public-response.js';
import { openPageFiles } from './page-files.js';
import { confinePage } from './page-policy.js';

const PATH = '/dashboard';

/** Adds the dashboard at `/dashboard`; paths below it are its routes in the browser, and its assets. */
export function dashboardPageRoutes(app: FastifyInstance): void {
  const files = openPageFiles('dashboard');
  const page = (route: string, find: (request: FastifyRequest) => PublicResponse | undefined) => {
    app.get(route, async (request, reply) => {
      const found = find(request);
      if (found === undefined) throw new ApiError(ErrorCode.ROUTE_NOT_FOUND, 'there is no file of this name');
      return sendPublic(request, confinePage(reply), found);
    });
  };
  page(PATH, () => files.readDocument());
  page(`${PATH}/*`, () => files.readDocument());
  // Its address has the code of the identity provider in it.
  page(`${PATH}/sign-in/callback`, () => ({ ...files.readDocument(), cacheControl: 'no-store' }));
  page(`${PATH}/assets/:name`, ({ params }) => files.readAsset((params as { name: string }).name));
}
