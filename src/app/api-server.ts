import { AttestationService } from '../../gen/attestation/v1/attestations_pb.js';
import { BatchService } from '../../gen/attestation/v1/batches_pb.js';
import { InfoService } from '../../gen/attestation/v1/service_pb.js';
import type { Config } from '../config.js';
import type { Observation } from '../http/requests.js';
import { type ApiServer, createServer } from '../http/server.js';
import type { Logger } from '../logger.js';
import type { Register } from '../pipeline/register.js';
import type { Principal } from '../principal.js';
import { createRandomSource } from '../random.js';
import { attestationHandlers } from '../rpc/attestations.js';
import { batchHandlers } from '../rpc/batches.js';
import { createBundleReader } from '../rpc/bundles.js';
import type { DsseSigner } from '../rpc/create-attestation.js';
import { createCursors } from '../rpc/cursor.js';
import type { Directory } from '../rpc/directory.js';
import { infoHandlers } from '../rpc/info.js';
import type { Principals } from '../rpc/principals.js';
import { createReadLimits } from '../rpc/read-limits.js';
import { createSubmissionReader } from '../rpc/submission-reader.js';
import { createTrustRootsReader } from '../rpc/trust-roots.js';
import { loadSchemas } from '../schema/registry.js';
import { deriveKeyRing } from '../secret-key.js';
import type { Pool } from '../store/connect.js';
import { gather } from '../store/gather.js';
import { findSubmissions, findVersions } from '../store/submissions.js';
import type { Accepters } from './accepters.js';
import { adminCheck, adminServices } from './admin.js';
import { createDatabaseAway } from './database-away.js';
import { createHealthCheck } from './health-check.js';
import { openIdempotency } from './idempotency.js';
import type { JobSender } from './jobs.js';
import { publicRoutes } from './public-routes.js';
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

const GATHER = { maxKeys: 200, maxInFlight: 4 };

/** What an API process has opened for its handlers. */
export type ApiParts = {
  pool: Pool;
  directory: Directory;
  accepters: Accepters;
  principals: Principals;
  jobs: JobSender;
  signerOf: (environment: Principal['environment']) => DsseSigner;
};

/** The handlers, put together with what they work with, behind the server of all surfaces. */
export function createApiServer(
  options: ApiOptions,
  { pool, directory, accepters, principals, jobs, signerOf }: ApiParts,
): ApiServer {
  const { config, log, register } = options;
  const { secretKeys } = config.secrets;
  const databaseAway = createDatabaseAway(log);
  const cursors = createCursors(deriveKeyRing(secretKeys, 'cursor'));
  const trustRoots = createTrustRootsReader(pool, options.verifyUrl, Date.now);
  const submissionLimits = createSubmissionLimits(pool);
  const readLimits = createReadLimits(pool, () => performance.now());
  const findSubmission = gather(
    async (ids) => new Map((await findSubmissions(pool, ids)).map((row) => [row.id, row])),
    GATHER,
  );
  const attestations = attestationHandlers({
    pool,
    directory,
    accepterOf: accepters.of,
    findSubmission,
    reader: createSubmissionReader({
      findSubmission,
      findVersion: gather((ids) => findVersions(pool, ids), GATHER),
      directory,
      bundles: createBundleReader(pool, directory, () => performance.now()),
    }),
    cursors,
    noteUse: submissionLimits.note,
    schemas: loadSchemas({ dir: config.schemaDir }),
    signerOf,
    idempotency: openIdempotency(config, pool),
    clock: Date.now,
    random: createRandomSource(),
  });
  const services = [
    { desc: AttestationService, handlers: attestations },
    { desc: BatchService, handlers: batchHandlers({ pool, directory, cursors, clock: Date.now }) },
    webhookService(options, pool, cursors),
    {
      desc: InfoService,
      handlers: infoHandlers({
        pool,
        trustRoots,
        problem: createHealthCheck({ pool, register, log, monotonicMs: () => performance.now() }),
        clock: Date.now,
      }),
    },
    ...adminServices({ config, pool, cursors, principals, queue: jobs.queue }),
  ].map(databaseAway.tellAll);
  return createServer({
    services,
    moreRpcs: standardRpcs(
      services.map(({ desc }) => desc),
      options.isReady,
    ),
    findPrincipal: databaseAway.tell(principals.find),
    isAdmin: adminCheck(config.secrets.adminToken),
    takeRead: databaseAway.tell(readLimits.take),
    peekSubmissions: databaseAway.tell(async (principal, nowMs) => submissionLimits.peek(principal, nowMs)),
    nowMs: Date.now,
    publicRoutes: publicRoutes({ pool, directory, trustRoots, baseUrl: options.baseUrl }),
    log,
    observe: options.observe,
    corsOrigins: config.corsOrigins,
    ...(config.tls ? { tls: config.tls } : {}),
  });
}
