import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import type { TrustRoots } from '../../../gen/attestation/v1/service_pb.js';
import { unavailable } from '../core/errors.js';
import { answerOtherMethods, type PublicBody, sendPublic } from '../core/public-response.js';
import type { LogCache } from '../logs/log-cache.js';
import { logPath, type TrustRootsReader } from '../rpc/trust-roots.js';
import { isDatabaseAway } from '../store/database/database-errors.js';
import type { Log } from '../store/log/logs.js';
import type { LogReader } from './log-reader.js';

/** What the public mirror is made of. */
export type MirrorDeps = {
  logCache: LogCache;
  trustRoots: TrustRootsReader;
  logs: LogReader;
  /** A log's own page. */
  readLogPage: (log: Log) => Promise<string>;
  /** Renders trust roots as the REST surface does: the API's answer and the mirror are the same bytes. */
  writeTrustRoots: (roots: TrustRoots) => string;
};

/** Where the mirror is served on every API process; `VERIFY_URL` names it as the world sees it. */
const MIRROR_PATH = '/verify';

const TRUSTED_ROOTS = [
  { path: '/trusted_root.json', environment: Environment.LIVE },
  { path: '/trusted_root.test.json', environment: Environment.TEST },
];
const PATHS = [
  '/trust_roots.json',
  ...TRUSTED_ROOTS.map(({ path }) => path),
  '/log/:log',
  '/log/:log/checkpoint',
  '/log/:log/tile/*',
];
const SHORT = 'public, max-age=5';
const TRUST = 'public, max-age=60';
const AWAY = 'the service cannot reach its database now';
const AWAY_SECONDS = 2;
const FOREVER = 'public, max-age=31536000, immutable';
const CHECKPOINT = { contentType: 'text/plain; charset=utf-8', cacheControl: SHORT };
const LOG_PAGE = { contentType: 'application/json', cacheControl: SHORT };
const TILE = { contentType: 'application/octet-stream', cacheControl: FOREVER };

/** Adds the public, unauthenticated routes: trust roots, and each log's page, checkpoint and tiles. */
export function mirrorRoutes(app: FastifyInstance, deps: MirrorDeps): void {
  app.setErrorHandler((error) => {
    throw isDatabaseAway(error) ? unavailable(AWAY, AWAY_SECONDS, error) : error;
  });
  const send = async (request: FastifyRequest, reply: FastifyReply, body: PublicBody | undefined) =>
    body === undefined ? notFound(reply) : sendPublic(request, reply, body);
  app.get(`${MIRROR_PATH}/trust_roots.json`, async (request, reply) =>
    send(request, reply, jsonBody(deps.writeTrustRoots(await deps.trustRoots.read()))),
  );
  for (const { path, environment } of TRUSTED_ROOTS) {
    app.get(MIRROR_PATH + path, async (request, reply) =>
      send(request, reply, jsonBody(JSON.stringify(await deps.trustRoots.readSigstore(environment)))),
    );
  }
  app.get<{ Params: { log: string } }>(`${MIRROR_PATH}/log/:log`, async (request, reply) => {
    const log = findLog(deps, request.params.log);
    const page = log && { ...LOG_PAGE, bytes: await deps.readLogPage(log) };
    return send(request, reply, page);
  });
  app.get<{ Params: { log: string } }>(`${MIRROR_PATH}/log/:log/checkpoint`, async (request, reply) => {
    const log = findLog(deps, request.params.log);
    const note = log && (await deps.logs.checkpoint(log));
    return send(request, reply, note === undefined ? undefined : { ...CHECKPOINT, bytes: note });
  });
  app.get<{ Params: { log: string; '*': string } }>(
    `${MIRROR_PATH}/log/:log/tile/*`,
    async (request, reply) => {
      const log = findLog(deps, request.params.log);
      const tile = log && (await deps.logs.tile(log, `tile/${request.params['*']}`));
      return send(request, reply, tile && { ...TILE, ...tile });
    },
  );
  for (const path of PATHS) answerOtherMethods(app, MIRROR_PATH + path);
}

function jsonBody(bytes: string): PublicBody {
  return { bytes, contentType: 'application/json', cacheControl: TRUST };
}

function findLog({ logCache }: MirrorDeps, path: string): Log | undefined {
  return logCache.allLogs().find((log) => logPath(log) === path);
}

function notFound(reply: FastifyReply): FastifyReply {
  return reply
    .code(404)
    .header('access-control-allow-origin', '*')
    .header('cache-control', SHORT)
    .type('text/plain; charset=utf-8')
    .send('not found\n');
}
