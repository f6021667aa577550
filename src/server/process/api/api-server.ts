import type { FastifyInstance } from 'fastify';
import { BatchService } from '../../../../gen/attestation/v1/batches_pb.js';
import type { Config } from '../../../config/config.js';
import type { Principals } from '../../admin/principals.js';
import { findReadyBundle } from '../../attestations/bundles/ready-bundle.js';
import type { StampWitness } from '../../attestations/stamps/stamp-witness.js';
import type { Logger } from '../../core/logger.js';
import { claimedKey } from '../../core/principal.js';
import type { Pool } from '../../database/connect.js';
import { type ApiServer, createServer, type ServerDeps } from '../../http/server.js';
import type { ServiceEntry } from '../../http/services.js';
import type { Observation } from '../../http/socket/requests.js';
import { hasClaim } from '../../idempotency/idempotency-keys.js';
import type { JobSender } from '../../jobs/job-sender.js';
import { deriveKeyRing } from '../../keys/key-ring.js';
import type { TufKey } from '../../keys/tuf-keys.js';
import { createReadLimits } from '../../limits/read-limits.js';
import { createSubmissionLimits } from '../../limits/submission-limits.js';
import { checkpointSigners } from '../../log/checkpoint-signers.js';
import type { Register } from '../../log/register/register.js';
import { createTrustRootsReader, type TrustRootsReader } from '../../public/trust-roots.js';
import { announceKeyChange } from '../../queue/broadcast.js';
import { type Cursors, createCursors } from '../../rpc/cursor.js';
import { dashboardPageRoutes } from '../../web/dashboard-page.js';
import { batchHandlers } from '../../witnessing/rpc/batches.js';
import type { Standby } from '../standby.js';
import { adminServices } from './admin.js';
import { adminCheck, createWrongDelay } from './admin-check.js';
import { type AttestationParts, attestationServices, openReaders } from './attestation-service.js';
import { createDashboard, type Dashboard } from './dashboard.js';
import { explainDatabaseErrors } from './database-unavailable.js';
import { exportService } from './export-service.js';
import { infoService } from './info-service.js';
import { itemError } from './item-error.js';
import { publicRoutes } from './public-routes.js';
import { standardServices } from './standard-rpcs.js';
import { tokenService } from './token-service.js';
import { webhookService } from './webhook-service.js';

/** The options of an API process. Addresses are functions because the port is known only after listening. */
export type ApiOptions = Standby & {
  config: Config;
  /** The witnesses that stamp signatures. */
  stampWitnesses: readonly StampWitness[];
  queuePrefix: string;
  register: Register;
  log: Logger;
  baseUrl: () => string;
  verifyUrl: () => string;
  /** Whether the process is ready, for gRPC health. */
  isReady: () => Promise<boolean>;
  observe: (observation: Observation) => void;
};

/** The open resources of the handlers. */
type ApiParts = AttestationParts & {
  principals: Principals;
  jobs: JobSender;
  tufKeys: readonly TufKey[];
  /** Counts reads. */
  countPool: Pool;
  /** Why reads come from the standby; undefined while they come from the primary. */
  awayReason: () => string | undefined;
};

/** The servers of a process. With a port of its own the admin API is served there only. */
export type ApiServers = { server: ApiServer; adminServer: ApiServer | undefined };

/** Wires the handlers with their dependencies and creates the servers of all protocols. */
export function createApiServers(options: ApiOptions, parts: ApiParts): ApiServers {
  const { config, log, register, localPool } = options;
  const { pool, readPool, logCache, principals, jobs, awayReason } = parts;
  const { secretKeys } = config.secrets;
  const explainError = explainDatabaseErrors(log);
  const cursors = createCursors(deriveKeyRing(secretKeys, 'cursor'));
  const trustRoots = createTrustRootsReader(readPool, options.verifyUrl, Date.now);
  const submissionLimits = createSubmissionLimits(localPool, Date.now);
  const readers = openReaders(parts);
  const readLimits = createReadLimits(parts.countPool, { isCountedHere: () => awayReason() !== undefined });
  const services = publicServices(options, parts, {
    cursors,
    readers,
    trustRoots,
    explainError,
    submissionLimits,
  });
  const delayWrong = createWrongDelay();
  const isAdmin = adminCheck(config.secrets.adminToken, delayWrong);
  const onKeyChange = (id: string) => {
    principals.evict(id);
    const queue = jobs.connected();
    if (queue !== undefined) announceKeyChange(queue, id);
  };
  const dashboard = createDashboard({ ...options, pool, cursors, isAdmin, delayWrong, onKeyChange });
  services.push(tokenService(config, { ...options, pool, takeReads: readLimits.take, onKeyChange }));
  const { tufKeys } = parts;
  const { send } = jobs;
  const admin = adminServices({ config, pool, cursors, onKeyChange, send, dashboard, trustRoots, tufKeys });
  const shared: Omit<ServerDeps, 'services'> = {
    principals,
    isAdmin,
    takeReads: readLimits.take,
    chargeReads: readLimits.charge,
    findOverdrawn: readLimits.findOverdrawn,
    submissionWindows: submissionLimits.windows,
    findSpentCeiling: submissionLimits.findSpentCeiling,
    hasClaim: (principal, key) =>
      hasClaim(pool, {
        holder: principal.id,
        key: claimedKey(principal, key),
        retentionMs: config.idempotencyRetentionMs,
      }),
    explainError,
    nowMs: Date.now,
    log,
    observe: options.observe,
    limits: config.openLimits,
    ...(config.tls ? { tls: config.tls } : {}),
  };
  const open = {
    publicRoutes: publicRoutes({
      pool: readPool,
      logCache,
      trustRoots,
      baseUrl: options.baseUrl,
      register,
      verifyUrl: options.verifyUrl,
      signerOf: checkpointSigners(parts.logKeys),
      hasDashboard: dashboard !== undefined && config.adminPort === undefined,
      lookup: { isDefault: config.publicLookup, findBundle: (id) => findReadyBundle(readers, id) },
    }),
    corsOrigins: config.corsOrigins,
  };
  return splitServers(options, { services, admin, dashboard, shared, open });
}

type ServiceParts = {
  cursors: Cursors;
  readers: ReturnType<typeof openReaders>;
  trustRoots: TrustRootsReader;
  explainError: ReturnType<typeof explainDatabaseErrors>;
  submissionLimits: ReturnType<typeof createSubmissionLimits>;
};

/** The services that API keys may call. */
function publicServices(
  options: ApiOptions,
  parts: ApiParts,
  { cursors, readers, trustRoots, explainError, submissionLimits }: ServiceParts,
): ServiceEntry[] {
  const { config, log } = options;
  const { pool, readPool, logCache, schemas, jobs } = parts;
  const { send } = jobs;
  const asApiError = (error: unknown, requestId: string) =>
    itemError(log, explainError('batchCreateAttestations', error), requestId);
  return [
    ...attestationServices(config, parts, {
      cursors,
      recordUse: submissionLimits.record,
      findSpentCeiling: submissionLimits.findSpentCeiling,
      asApiError,
      send,
      ...readers,
    }),
    { desc: BatchService, handlers: batchHandlers({ pool: readPool, logCache, cursors, clock: Date.now }) },
    webhookService(options, { pool, cursors, send }),
    exportService(config, { pool, cursors, schemas, send }),
    infoService(options, { pool: readPool, trustRoots, awayReason: parts.awayReason }),
  ];
}

type ServerParts = {
  services: ServiceEntry[];
  admin: ServiceEntry[];
  dashboard: Dashboard | undefined;
  /** The options of both servers, and those of the public one. */
  shared: Omit<ServerDeps, 'services'>;
  open: Partial<ServerDeps>;
};

function splitServers(
  options: ApiOptions,
  { services, admin, dashboard, shared, open }: ServerParts,
): ApiServers {
  const { config, log } = options;
  const sessions = dashboard?.sessions;
  const all = [...services, ...admin];
  if (config.adminPort === undefined) {
    const publicRoutes = async (app: FastifyInstance) => {
      await open.publicRoutes?.(app);
      if (dashboard !== undefined) dashboardRoutes(app, dashboard);
    };
    const server = createServer({ ...shared, ...open, sessions, publicRoutes, ...serve(all, options) });
    return { server, adminServer: undefined };
  }
  const server = createServer({ ...shared, ...open, ...serve(services, options) });
  const adminServer = createServer({
    ...shared,
    ...serve(admin, options),
    ...(dashboard === undefined ? {} : onAdminPort(all, dashboard)),
    log: log.child({ listener: 'admin' }),
  });
  return { server, adminServer };
}

const NO_PRINCIPALS: ServerDeps['principals'] = { peek: () => undefined, get: async () => undefined };

/** The dashboard beside the admin API: there the API's own services are for sessions only. */
function onAdminPort(services: ServiceEntry[], dashboard: Dashboard): Partial<ServerDeps> {
  const { sessions } = dashboard;
  return {
    services,
    sessions,
    principals: NO_PRINCIPALS,
    publicRoutes: (app) => dashboardRoutes(app, dashboard),
  };
}

function dashboardRoutes(app: FastifyInstance, { routes }: Dashboard): void {
  dashboardPageRoutes(app);
  routes(app);
}

/** Adds gRPC health and reflection to services. */
function serve(
  services: ServiceEntry[],
  { isReady }: ApiOptions,
): Pick<ServerDeps, 'services' | 'publicServices'> {
  const descs = services.map(({ desc }) => desc);
  return { services, publicServices: standardServices(descs, isReady) };
}
