import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { unavailable } from '../core/errors.js';
import { handleOtherMethods, type PublicResponse, sendPublic } from '../core/http/public-response.js';
import { isDatabaseUnavailable } from '../database/database-errors.js';
import { SigningError } from '../keys/signing-error.js';
import type { LogCache } from '../log/log-cache.js';
import type { Log } from '../log/store/logs.js';
import type { LogReader } from './log-reader.js';
import { logPath, type TrustRootsReader } from './trust-roots.js';

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

const TRUSTED_ROOTS = [
  { path: '/trusted_root.json', environment: Environment.LIVE },
  { path: '/trusted_root.test.json', environment: Environment.TEST },
];
const POLICIES = [
  { path: '/policy', environment: Environment.LIVE },
  { path: '/policy.test', environment: Environment.TEST },
];
const PATHS = [
  '/trust_roots.json',
  ...POLICIES.map(({ path }) => path),
  ...TRUSTED_ROOTS.map(({ path }) => path),
  '/log/:log',
  '/log/:log/checkpoint',
  '/log/:log/tile/*',
];
const CACHE_5_S = 'public, max-age=5';
const CACHE_60_S = 'public, max-age=60';
const UNAVAILABLE = 'the service cannot reach its database now';
const UNSIGNED = 'this process cannot sign the checkpoint of the empty log now';
const RETRY_SECONDS = 2;
const CACHE_FOREVER = 'public, max-age=31536000, immutable';
const CHECKPOINT = { contentType: 'text/plain; charset=utf-8', cacheControl: CACHE_5_S };
const POLICY = { contentType: 'text/plain; charset=utf-8', cacheControl: CACHE_60_S };
const LOG_PAGE = { contentType: 'application/json', cacheControl: CACHE_5_S };
const TILE = { contentType: 'application/octet-stream', cacheControl: CACHE_FOREVER };

/** Registers the routes without authentication: trust roots, and each log's page, checkpoint and tiles. */
export function tlogRoutes(app: FastifyInstance, deps: TlogDeps): void {
  app.setErrorHandler((error) => {
    if (error instanceof SigningError) throw unavailable(UNSIGNED, RETRY_SECONDS, error);
    throw isDatabaseUnavailable(error) ? unavailable(UNAVAILABLE, RETRY_SECONDS, error) : error;
  });
  const send = async (request: FastifyRequest, reply: FastifyReply, body: PublicResponse | undefined) =>
    body === undefined ? notFound(reply) : sendPublic(request, reply, body);
  app.get(`${PUBLIC_PATH}/trust_roots.json`, async (request, reply) =>
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
  return { bytes, contentType: 'application/json', cacheControl: CACHE_60_S };
}

function findLog({ logCache }: TlogDeps, path: string): Log | undefined {
  return logCache.allLogs().find((log) => logPath(log) === path);
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
