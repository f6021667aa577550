import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { ApiError } from '../core/errors.js';
import { type PublicResponse, sendPublic } from '../core/public-response.js';
import { openPageFiles } from './page-files.js';

const PATH = '/dashboard';

/** Scripts, styles and requests of this origin only, no inline script, no frame around it. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ');

/** Adds the dashboard at `/dashboard`; paths below it are its routes in the browser, and its assets. */
export function dashboardPageRoutes(app: FastifyInstance): void {
  const files = openPageFiles('dashboard');
  const page = (route: string, find: (request: FastifyRequest) => PublicResponse | undefined) => {
    app.get(route, async (request, reply) => {
      const found = find(request);
      if (found === undefined) throw new ApiError(ErrorCode.ROUTE_NOT_FOUND, 'there is no file of this name');
      return sendPublic(request, guard(reply), found);
    });
  };
  page(PATH, () => files.readDocument());
  page(`${PATH}/*`, () => files.readDocument());
  page(`${PATH}/assets/:name`, ({ params }) => files.readAsset((params as { name: string }).name));
}

function guard(reply: FastifyReply): FastifyReply {
  return reply
    .header('content-security-policy', POLICY)
    .header('cross-origin-opener-policy', 'same-origin')
    .header('cross-origin-resource-policy', 'same-origin')
    .header('x-frame-options', 'DENY')
    .header('referrer-policy', 'no-referrer');
}
