import { AttestationService } from '../../gen/attestation/v1/attestations_pb.js';
import { BatchService } from '../../gen/attestation/v1/batches_pb.js';
import { InfoService } from '../../gen/attestation/v1/service_pb.js';
import type { Config } from '../config.js';
import type { Observation } from '../http/requests.js';
import { type ApiServer, createServer } from '../http/server.js';
import type { Logger } from '../logger.js';
import type { Check } from '../ops.js';
import { sealJob } from '../pipeline/job.js';
import type { Register } from '../pipeline/register.js';
import type { Principal } from '../principal.js';
import { onKeyChange } from '../queue/broadcast.js';
import { createRandomSource } from '../random.js';
import { attestationHandlers } from '../rpc/attestations.js';
import { batchHandlers } from '../rpc/batches.js';
import { createBundleReader } from '../rpc/bundles.js';
import type { DsseSigner } from '../rpc/create-attestation.js';
import { createCursors } from '../rpc/cursor.js';
import { type Directory, openDirectory } from '../rpc/directory.js';
import { infoHandlers } from '../rpc/info.js';
import { createPrincipals, type Principals } from '../rpc/principals.js';
import { createReadLimits } from '../rpc/read-limits.js';
import { createSubmissionReader } from '../rpc/submission-reader.js';
import { createTrustRootsReader } from '../rpc/trust-roots.js';
import { loadSchemas } from '../schema/registry.js';
import { deriveKeyRing } from '../secret-key.js';
import { connectPool, type Pool } from '../store/connect.js';
import { gather } from '../store/gather.js';
import { findSubmissions, findVersions } from '../store/submissions.js';
import { type Accepters, createAccepters } from './accepters.js';
import { adminCheck, adminServices } from './admin.js';
import { atMostEvery } from './at-most-every.js';
import { createDatabaseAway } from './database-away.js';
import { createHealthCheck } from './health-check.js';
import { openIdempotency } from './idempotency.js';
import { createJobSender, type JobSender } from './jobs.js';
import { createLogGuard, type LogGuard } from './log-guard.js';
import { publicRoutes } from './public-routes.js';
import { checkRegisters, findLogProblems } from './register-check.js';
import { setUpDsseSigners, setUpLogs } from './setup.js';
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

/** A running API process. */
export type Api = {
  server: ApiServer;
  /** What `/readyz` asks. */
  checks: Check[];
  stop(): Promise<void>;
};

const STATEMENT_TIMEOUT_MS = 10_000;
/** The gathered write: measured in architecture terms, two calls under way keep the database busy. */
const ACCEPT_LIMITS = { maxRows: 500, maxBytes: 1024 * 1024, maxInFlight: 2, maxQueuedRows: 5_000 };
const PATIENCE_MS = 5_000;
const GATHER = { maxKeys: 200, maxInFlight: 4 };
const DIRECTORY_REFRESH_MS = 5_000;
/** A seal job is sent at most this often; one that is waiting already is as good. */
const WAKE_MS = 100;

/** Opens the database, keys and queue of an API process and makes its server, which does not listen yet. */
export async function startApi(options: ApiOptions): Promise<Api> {
  const { config, log, register } = options;
  const pool = connectPool({
    url: config.databaseUrl,
    name: 'api',
    max: config.poolSize,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
  });
  await setUpLogs(pool, config.logDomain, config.secrets.log);
  const dsse = await setUpDsseSigners(pool, config.secrets.dsse);
  await checkRegisters({ pool, register, log });
  const directory = await openDirectory(pool);
  const principals = createPrincipals(pool, deriveKeyRing(config.secrets.secretKeys, 'api-key'), Date.now);
  const jobs = createJobSender({
    url: config.natsUrl,
    prefix: options.queuePrefix,
    name: 'attest api',
    log,
    onQueue: async (queue) => onKeyChange(queue, principals.forget),
  });
  const guard = createLogGuard(register, directory, log);
  const writePool = connectPool({
    url: config.databaseUrl,
    name: 'accept',
    max: ACCEPT_LIMITS.maxInFlight * 2,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    onClose: guard.connectionLost,
  });
  const accepters = openAccepters(config, writePool, directory, guard, jobs);
  const server = createApiServer(options, {
    pool,
    directory,
    accepters,
    principals,
    jobs,
    signerOf: dsse.of,
  });
  const reloadTls = () => reload(server, log);
  process.on('SIGHUP', reloadTls);
  const refreshing = setInterval(
    () => void directory.refresh().catch(() => {}),
    DIRECTORY_REFRESH_MS,
  ).unref();
  return {
    server,
    checks: [{ name: 'api', check: () => findReason({ pool, register, log }) }],
    stop: async () => {
      process.off('SIGHUP', reloadTls);
      await server.close();
      await accepters.close();
      await dsse.close();
      clearInterval(refreshing);
      await jobs.close();
      await Promise.all([pool.end({ timeout: 5 }), writePool.end({ timeout: 5 })]);
    },
  };
}

/** Certificate and key are read again for new connections; ones that do not fit are left and the old stay in use. */
function reload(server: ApiServer, log: Logger): void {
  try {
    server.reloadTls();
    log.info('certificate and key were read again');
  } catch (error) {
    log.error({ err: error }, 'certificate and key cannot be used; the old ones stay');
  }
}

function openAccepters(
  config: Config,
  pool: Pool,
  directory: Directory,
  guard: LogGuard,
  jobs: JobSender,
): Accepters {
  return createAccepters(directory, (logId) => ({
    pool,
    logId,
    limits: ACCEPT_LIMITS,
    retentionMs: config.idempotencyRetentionMs,
    patienceMs: PATIENCE_MS,
    clock: Date.now,
    wake: atMostEvery(WAKE_MS, () => jobs.send(sealJob(logId))),
    beforeWrite: () => guard.assertWritable(pool, logId),
  }));
}

/** Why this process cannot do its work, for its operator; undefined when it can. */
async function findReason(deps: Parameters<typeof findLogProblems>[0]): Promise<string | undefined> {
  try {
    return (await findLogProblems(deps))[0];
  } catch (error) {
    return `the database cannot be reached: ${(error as Error).message}`;
  }
}

type Parts = {
  pool: Pool;
  directory: Directory;
  accepters: Accepters;
  principals: Principals;
  jobs: JobSender;
  signerOf: (environment: Principal['environment']) => DsseSigner;
};

/** The handlers, put together with what they work with, behind the server of all surfaces. */
function createApiServer(
  options: ApiOptions,
  { pool, directory, accepters, principals, jobs, signerOf }: Parts,
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
