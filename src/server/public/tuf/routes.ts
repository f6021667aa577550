import type { FastifyInstance } from 'fastify';
import { handleOtherMethods, sendPublic } from '../../core/http/public-response.js';
import { createBatchLoader } from '../../database/batch-loader.js';
import type { Pool } from '../../database/connect.js';
import { CACHE_5_S, tufFileKind } from '../public-files.js';
import { findTufFiles } from './store.js';

const FILE =
  /^(timestamp\.json|\d{1,15}\.(root|snapshot|targets)\.json|targets\/[0-9a-f]{64}\.[a-z0-9._]{1,64})$/;
const LOADING = { maxKeys: 20, maxInFlight: 2 };
const NOTHING = 'no such file\n';
const NO_REPOSITORY =
  'there is no TUF repository: the operator of this service makes one with attest tuf init\n';

/** Registers the routes of the TUF repository. A file that is not there is a 404, as clients expect of the next root. */
export function tufRoutes(app: FastifyInstance, pool: Pool, publicPath: string): void {
  const findFile = createBatchLoader((names) => findTufFiles(pool, names), LOADING);
  const path = `${publicPath}/tuf/*`;
  app.get<{ Params: { '*': string } }>(path, async (request, reply) => {
    const name = request.params['*'];
    const bytes = FILE.test(name) ? await findFile(name) : undefined;
    if (bytes !== undefined) {
      return sendPublic(request, reply, { ...tufFileKind(name), bytes });
    }
    const text = (await findFile('timestamp.json')) === undefined ? NO_REPOSITORY : NOTHING;
    const response = { bytes: text, contentType: 'text/plain; charset=utf-8', cacheControl: CACHE_5_S };
    return sendPublic(request, reply.code(404), response);
  });
  handleOtherMethods(app, path);
}
