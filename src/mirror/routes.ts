import type { FastifyInstance, FastifyReply } from 'fastify';
import { Environment } from '../../gen/attestation/v1/environment_pb.js';
import type { TrustRoots } from '../../gen/attestation/v1/service_pb.js';
import { unavailable } from '../errors.js';
import { answerOtherMethods, sendPublic } from '../public-answer.js';
import { logPath, type TrustRootsReader } from '../rpc/trust-roots.js';
import type { Pool } from '../store/connect.js';
import { isDatabaseAway } from '../store/database-errors.js';
import { listLogs } from '../store/logs.js';
import type { LogReader } from './log-reader.js';

/** What the public mirror is made of. */
export type MirrorDeps = {
  pool: Pool;
  trustRoots: TrustRootsReader;
  logs: LogReader;
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
  '/log/:log/checkpoint',
  '/log/:log/tile/*',
];
const SHORT = 'public, max-age=5';
const TRUST = 'public, max-age=60';
const AWAY = 'the service cannot reach its database now';
const AWAY_SECONDS = 2;
const FOREVER = 'public, max-age=31536000, immutable';

/** Adds the public, unauthenticated routes: trust roots, and each log's checkpoint and tiles. */
export function mirrorRoutes(app: FastifyInstance, deps: MirrorDeps): void {
  app.setErrorHandler((error) => {
    throw isDatabaseAway(error) ? unavailable(AWAY, AWAY_SECONDS, error) : error;
  });
  const json = 'application/json';
  app.get(`${MIRROR_PATH}/trust_roots.json`, async (request, reply) =>
    sendPublic(request, reply, deps.writeTrustRoots(await deps.trustRoots.read()), json, TRUST),
  );
  for (const { path, environment } of TRUSTED_ROOTS) {
    app.get(MIRROR_PATH + path, async (request, reply) => {
      const root = await deps.trustRoots.readSigstore(environment);
      return sendPublic(request, reply, JSON.stringify(root), json, TRUST);
    });
  }
  app.get<{ Params: { log: string } }>(`${MIRROR_PATH}/log/:log/checkpoint`, async (request, reply) => {
    const log = await findLog(deps, request.params.log);
    const note = log && (await deps.logs.checkpoint(log));
    return note === undefined
      ? notFound(reply)
      : sendPublic(request, reply, note, 'text/plain; charset=utf-8', SHORT);
  });
  app.get<{ Params: { log: string; '*': string } }>(
    `${MIRROR_PATH}/log/:log/tile/*`,
    async (request, reply) => {
      const log = await findLog(deps, request.params.log);
      const tile = log && (await deps.logs.tile(log, `tile/${request.params['*']}`));
      return tile === undefined
        ? notFound(reply)
        : sendPublic(request, reply, tile.bytes, tile.contentType, FOREVER);
    },
  );
  for (const path of PATHS) answerOtherMethods(app, MIRROR_PATH + path);
}

async function findLog({ pool }: MirrorDeps, path: string) {
  return (await listLogs(pool)).find((log) => logPath(log) === path);
}

function notFound(reply: FastifyReply): FastifyReply {
  return reply
    .code(404)
    .header('access-control-allow-origin', '*')
    .header('cache-control', SHORT)
    .type('text/plain; charset=utf-8')
    .send('not found\n');
}
