import { BatchService } from '../../gen/attestation/v1/batches_pb.js';
import { InfoService } from '../../gen/attestation/v1/service_pb.js';
import type { Config } from '../config.js';
import type { Observation } from '../http/requests.js';
import { type ApiServer, createServer } from '../http/server.js';
import type { Logger } from '../logger.js';
import type { Register } from '../pipeline/register.js';
import { batchHandlers } from '../rpc/batches.js';
import { createCursors } from '../rpc/cursor.js';
import { infoHandlers } from '../rpc/info.js';
import type { Principals } from '../rpc/principals.js';
import { createReadLimits } from '../rpc/read-limits.js';
import { createTrustRootsReader } from '../rpc/trust-roots.js';
import { deriveKeyRing } from '../secret-key.js';
import { hasClaim } from '../store/idempotency.js';
import { adminServices } from './admin.js';
import { adminCheck } from './admin-check.js';
import { type AttestationParts, attestationService } from './attestation-service.js';
import { createDatabaseAway } from './database-away.js';
import { createDegradationCheck } from './degradation.js';
import { createHealthCheck } from './health-check.js';
import type { JobSender } from './jobs.js';
import { publicRoutes } from './public-routes.js';
import { checkpointSigners } from './setup.js';
import { standardRpcs } from './standard-rpcs.js';
import { createSubmissionLimits } from './submission-limits.js';
import { webhookService } from './webhook-service.js';

/** What an API process is started with; the addresses are read when first asked for, once the port is known. */
export type ApiOptions = {
  config: Config;
  queuePrefix: string;
  register: Register;
  log: Logger;
  baseUrl: () => string;
  verifyUrl: () => string;
  /** Whether `/readyz` would say so: for gRPC health. */
  isReady: () => Promise<boolean>;
  observe: (observation: Observation) => void;
};

/** What an API process has opened for its handlers. */
export type ApiParts = AttestationParts & { principals: Principals; jobs: JobSender };

/** The handlers, put together with what they work with, behind the server of all surfaces. */
export function createApiServer(options: ApiOptions, parts: ApiParts): ApiServer {
  const { config, log, register } = options;
  const { pool, directory, principals, jobs } = parts;
  const { secretKeys } = config.secrets;
  const databaseAway = createDatabaseAway(log);
  const cursors = createCursors(deriveKeyRing(secretKeys, 'cursor'));
  const trustRoots = createTrustRootsReader(pool, options.verifyUrl, Date.now);
  const submissionLimits = createSubmissionLimits(pool);
  const readLimits = createReadLimits(pool, () => performance.now());
  const findProblems = createHealthCheck({ pool, register, log, monotonicMs: () => performance.now() });
  const services = [
    attestationService(config, parts, { cursors, noteUse: submissionLimits.note }),
    { desc: BatchService, handlers: batchHandlers({ pool, directory, cursors, clock: Date.now }) },
    webhookService(options, pool, cursors),
    {
      desc: InfoService,
      handlers: infoHandlers({
        pool,
        trustRoots,
        findDegradation: createDegradationCheck(pool, () => performance.now()),
        problem: async (environment) =>
          (await findProblems()).find((problem) => problem.environment === environment)?.reason,
        clock: Date.now,
      }),
    },
    ...adminServices({ config, pool, cursors, principals, queue: jobs.connected }),
  ].map(databaseAway.tellAll);
  return createServer({
    services,
    moreRpcs: standardRpcs(
      services.map(({ desc }) => desc),
      options.isReady,
    ),
    findPrincipal: databaseAway.tell('findPrincipal', principals.find),
    isAdmin: adminCheck(config.secrets.adminToken),
    takeReads: databaseAway.tell('takeReads', readLimits.take),
    oweRead: readLimits.owe,
    findOverdrawn: readLimits.findOverdrawn,
    peekSubmissions: databaseAway.tell('peekSubmissions', submissionLimits.peek),
    hasClaim: databaseAway.tell('hasClaim', ({ apiKeyId: holder }, key) =>
      hasClaim(pool, { holder, key, retentionMs: config.idempotencyRetentionMs }),
    ),
    nowMs: Date.now,
    publicRoutes: publicRoutes({
      pool,
      directory,
      trustRoots,
      baseUrl: options.baseUrl,
      register,
      verifyUrl: options.verifyUrl,
      signerOf: checkpointSigners(config.secrets.log),
    }),
    log,
    observe: options.observe,
    corsOrigins: config.corsOrigins,
    limits: config.openLimits,
    ...(config.tls ? { tls: config.tls } : {}),
  });
}
