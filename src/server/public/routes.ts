import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { unavailable } from '../core/errors.js';
import { handleOtherMethods, type PublicResponse, sendPublic } from '../core/http/public-response.js';
import { isDatabaseUnavailable } from '../database/database-errors.js';
import { SigningError } from '../keys/signing-error.js';
import type { LogCache } from '../log/log-cache.js';
import { type Log, logName } from '../log/store/logs.js';
import type { LogReader } from './log-reader.js';
import {
  CACHE_5_S,
  CHECKPOINT,
  LOG_PAGE,
  POLICIES,
  POLICY,
  ROOTS,
  TILE,
  TRUST_ROOTS,
  TRUSTED_ROOTS,
} from './public-files.js';
import type { TrustRootsReader } from './trust-roots.js';

/** Dependencies of the public routes. */
export type TlogDeps = {
  logCache: LogCache;
  trustRoots: TrustRootsReader;
  logReader: LogReader;
  /** Returns a log's page as JSON. */
  readLogPage: (log: Log) => Promise<string>;
};

/** The path of these routes on every API process. `VERIFY_URL` is their public address. */
export const PUBLIC_PATH = '/verify';

const PATHS = [
  TRUST_ROOTS,
  ...POLICIES.map(({ path }) => path),
  ...TRUSTED_ROOTS.map(({ path }) => path),
  '/log/:log',
  '/log/:log/checkpoint',
  '/log/:log/tile/*',
];
const UNAVAILABLE = 'the service cannot reach its database now';
const UNSIGNED = 'this process cannot sign the checkpoint of the empty log now';
const RETRY_SECONDS = 2;

/** Registers the routes without authentication: trust roots, and each log's page, checkpoint and tiles. */
export function tlogRoutes(app: FastifyInstance, deps: TlogDeps): void {
  app.setErrorHandler((error) => {
    if (error instanceof SigningError) throw unavailable(UNSIGNED, RETRY_SECONDS, error);
    throw isDatabaseUnavailable(error) ? unavailable(UNAVAILABLE, RETRY_SECONDS, error) : error;
  });
  const send = async (request: FastifyRequest, reply: FastifyReply, body: PublicResponse | undefined) =>
    body === undefined ? notFound(reply) : sendPublic(request, reply, body);
  app.get(PUBLIC_PATH + TRUST_ROOTS, async (request, reply) =>
    send(request, reply, jsonBody((await deps.trustRoots.read()).json().bytes)),
  );
  for (const { path, environment } of TRUSTED_ROOTS) {
    app.get(PUBLIC_PATH + path, async (request, reply) =>
      send(request, reply, jsonBody(JSON.stringify(await deps.trustRoots.readSigstore(environment)))),
    );
  }
  for (const { path, environment } of POLICIES) {
    app.get(PUBLIC_PATH + path, async (request, reply) =>
      send(request, reply, { ...POLICY, bytes: await deps.trustRoots.readLogPolicy(environment) }),
    );
  }
  app.get<{ Params: { log: string } }>(`${PUBLIC_PATH}/log/:log`, async (request, reply) => {
    const log = findLog(deps, request.params.log);
    const page = log && { ...LOG_PAGE, bytes: await deps.readLogPage(log) };
    return send(request, reply, page);
  });
  app.get<{ Params: { log: string } }>(`${PUBLIC_PATH}/log/:log/checkpoint`, async (request, reply) => {
    const log = findLog(deps, request.params.log);
    const note = log && (await deps.logReader.readCheckpoint(log));
    return send(request, reply, note === undefined ? undefined : { ...CHECKPOINT, bytes: note });
  });
  app.get<{ Params: { log: string; '*': string } }>(
    `${PUBLIC_PATH}/log/:log/tile/*`,
    async (request, reply) => {
      const log = findLog(deps, request.params.log);
      const tile = log && (await deps.logReader.readTile(log, `tile/${request.params['*']}`, request.peer));
      return send(request, reply, tile && { ...TILE, ...tile });
    },
  );
  for (const path of PATHS) handleOtherMethods(app, PUBLIC_PATH + path);
}

function jsonBody(bytes: PublicResponse['bytes']): PublicResponse {
  return { ...ROOTS, bytes };
}

function findLog({ logCache }: TlogDeps, path: string): Log | undefined {
  return logCache.allLogs().find((log) => logName(log) === path);
}

/** Responds that a public path has nothing. */
export function notFound(reply: FastifyReply): FastifyReply {
  return reply
    .code(404)
    .header('access-control-allow-origin', '*')
    .header('cache-control', CACHE_5_S)
    .type('text/plain; charset=utf-8')
    .send('not found\n');
}
