import { setFlagsFromString } from 'node:v8';
import { type Config, publicUrls } from '../../config/config.js';
import type { StampWitness } from '../attestations/stamps/stamp-witness.js';
import type { ShutdownHooks } from '../core/shutdown.js';
import { QUEUE_PREFIX } from '../jobs/job.js';
import type { JobSender } from '../jobs/job-sender.js';
import { addExportGauges, shipmentCounters } from '../ops/export-gauges.js';
import {
  addClockGauge,
  addFrozenGauge,
  addLogKeyGauge,
  addPipelineGauges,
  attemptCounters,
} from '../ops/gauges.js';
import { createMetrics, type Metrics, type MetricsSnapshot, mergeMetrics } from '../ops/metrics.js';
import { type Check, createOps, isReady } from '../ops/ops-listener.js';
import {
  addApiGauges,
  addApiProcessGauges,
  addPrimaryGauge,
  addProcessGauges,
  addStandbyGauge,
} from '../ops/process-gauges.js';
import { addQueueGauges } from '../ops/queue-gauges.js';
import { settledHistogram } from '../ops/settled-histogram.js';
import { addStorageGauge } from '../ops/storage-gauge.js';
import { addTufGauges } from '../ops/tuf-gauges.js';
import { warnIfUnwitnessed } from '../ops/unwitnessed.js';
import { addWitnessGauges, alarmCounter } from '../ops/witness-gauges.js';
import { openRegister } from '../witnessing/register/open-register.js';
import type { WitnessSetup } from '../witnessing/set-up-witnesses.js';
import type { ApiAddresses, Ready } from './addresses.js';
import type { Parent } from './api/api-process.js';
import { type ApiProcesses, startApiProcesses } from './api/api-processes.js';
import { openStandby, type Standby, standbyCheck } from './standby.js';
import { type OpenLog, openTelemetry } from './telemetry.js';

/**
 * V8's heap growing limit in percent of live memory. An API process under load takes 195 MB with it and 370 MB with the
 * default.
 */
const HEAP_GROWING_PERCENT = 40;

/**
 * Young objects are collected by the main thread alone. A collection is of few megabytes, for which V8 would wake four
 * helpers: a submission took an API process 213 µs of CPU, and 232 with them (9 rounds in turns, 64 clients, two cores).
 */
const V8_FLAGS = ['--no-parallel-scavenge', `--heap-growing-percent=${HEAP_GROWING_PERCENT}`];

/** The roles of a process; `attest up` has both. `parent` is that of an API process that shares its port with others. */
type ProcessOptions = OpenLog & {
  config: Config;
  roles: { api: boolean; worker: boolean };
  witnesses: readonly WitnessSetup[];
  /** The witnesses that stamp signatures: in API processes as well. */
  stampWitnesses: readonly StampWitness[];
  hooks: ShutdownHooks;
  parent?: Parent | undefined;
};

/** The parts that all roles of a process share. */
type Shared = ProcessOptions & {
  metrics: Metrics;
  checks: Check[];
  /** The clients of NATS, by role. */
  clients: Map<string, JobSender>;
  /** The public addresses; those of the configuration until the port is known. */
  urls: ReturnType<typeof publicUrls>;
  /** Opened with the first role. */
  standby: Standby | undefined;
  /** Why the process is not ready as a whole; empty if it is. */
  phase: string;
  /** The metrics of other processes, which `/metrics` adds. */
  readOthers: (() => Promise<MetricsSnapshot[]>) | undefined;
};

/**
 * Starts the roles of a process and its ops listener in order of dependency. Shutdown runs in reverse: it answers requests
 * in flight, then finishes jobs in progress. Loads only the modules of its roles: those of the API take 0.3 s.
 */
export async function startProcess(options: ProcessOptions): Promise<Ready> {
  for (const flag of V8_FLAGS) setFlagsFromString(flag);
  const { config, roles, witnesses, hooks, parent } = options;
  const metrics = createMetrics();
  await openTelemetry({ ...options, metrics }, hooks);
  const shared: Shared = {
    ...options,
    metrics,
    checks: [{ name: 'process', check: async () => shared.phase || undefined }],
    clients: new Map(),
    urls: publicUrls(config, config.port),
    standby: undefined,
    phase: 'the process is starting',
    readOthers: undefined,
  };
  addProcessGauges(metrics, config, witnesses);
  const opsUrl = parent === undefined ? await startOps(shared) : '';
  const hasProcesses = roles.api && parent === undefined && config.apiProcesses > 1;
  if (roles.worker || !hasProcesses) addQueueGauges(metrics, shared.clients);
  if (roles.worker) {
    await startWorkerRole(shared);
    shared.checks.push(...warnIfUnwitnessed(witnesses, shared.log));
  }
  const addresses = !roles.api ? {} : await (hasProcesses ? startApis(shared) : startApiRole(shared));
  shared.phase = '';
  hooks.add(async () => {
    shared.phase = 'the process is stopping';
  });
  await parent?.ready(addresses, shared);
  return { ...addresses, opsUrl };
}

/** @returns its address */
async function startOps(shared: Shared): Promise<string> {
  const { config, checks, metrics, log, hooks } = shared;
  const read = async () => {
    if (shared.readOthers === undefined) return metrics.read();
    return mergeMetrics([await metrics.snapshot(), ...(await shared.readOthers())]);
  };
  const ops = createOps({ checks, metrics: { read }, log });
  hooks.add(ops.close);
  const { port } = await ops.listen({ host: config.opsHost, port: config.opsPort });
  return `http://localhost:${port}`;
}

async function roleOptions(shared: Shared) {
  const { config, log, stampWitnesses } = shared;
  shared.standby ??= openProcessStandby(shared);
  const register = await openRegister(config.checkpointRegister);
  const baseUrl = () => shared.urls.baseUrl;
  return { config, stampWitnesses, queuePrefix: QUEUE_PREFIX, register, log, baseUrl, ...shared.standby };
}

function openProcessStandby({ config, log, metrics, checks, hooks }: Shared): Standby {
  const opened = openStandby({ databaseUrl: config.databaseUrl, log }, hooks);
  checks.push(standbyCheck(opened.standby));
  addStandbyGauge(metrics, opened.standby.reason);
  return opened;
}

async function startWorkerRole(shared: Shared): Promise<void> {
  const { metrics, witnesses, checks, clients, hooks } = shared;
  const { startWorker } = await import('./worker/worker.js');
  const options = {
    ...(await roleOptions(shared)),
    verifyUrl: () => shared.urls.verifyUrl,
    witnesses,
    observeAlarm: alarmCounter(metrics, witnesses),
    observeSettled: settledHistogram(metrics),
    observeAttempts: attemptCounters(metrics),
    observeShipments: shipmentCounters(metrics),
  };
  const worker = await startWorker(options, hooks);
  checks.push(...worker.checks);
  clients.set('worker', worker.jobs);
  addPipelineGauges(metrics, worker.pipeline.pool);
  addLogKeyGauge(metrics, worker.readLogKeys);
  addWitnessGauges(metrics, worker.pipeline.pool);
  addTufGauges(metrics, worker.readTufStatus);
  if (worker.storer !== undefined) addStorageGauge(metrics, worker.storer.sizes);
  addExportGauges(metrics, worker.pipeline.pool, worker.pipeline.exports.spoolBudget.bytesInUse);
}

/** Serves the API in this process. */
async function startApiRole(shared: Shared): Promise<ApiAddresses> {
  const { config, roles, metrics, checks, clients, hooks } = shared;
  const { startApi } = await import('./api/api.js');
  const options = {
    ...(await roleOptions(shared)),
    verifyUrl: () => shared.urls.verifyUrl,
    isReady: () => isReady(checks),
    observe: metrics.observeRequest,
  };
  const api = await startApi(options, hooks);
  checks.push(...api.checks);
  clients.set('api', api.jobs);
  addApiGauges(metrics, api.pool, api.sequencers.queued);
  if (!roles.worker) addFrozenGauge(metrics, api.pool);
  addClockGauge(metrics, api.offsetSeconds);
  addPrimaryGauge(metrics, api.awayReason);
  ignoreReplacing(shared);
  let admin: Pick<Ready, 'adminUrl'> = {};
  if (api.adminServer !== undefined && config.adminPort !== undefined) {
    const { port } = await api.adminServer.listen({ host: config.adminHost, port: config.adminPort });
    admin = { adminUrl: adminUrl(config, port) };
  }
  const { port } = await api.server.listen({ host: config.host, port: config.port });
  shared.urls = publicUrls(config, port);
  return addressesOf(config, shared.urls, admin);
}

/** SIGUSR2 is for the process that started this one; without a handler it would end a process. */
function ignoreReplacing({ log, hooks, parent }: Shared): void {
  const ignore = () => {
    if (parent === undefined) log.warn('SIGUSR2 has no effect: this process was started without --processes');
  };
  process.on('SIGUSR2', ignore);
  hooks.add(async () => process.off('SIGUSR2', ignore));
}

/** Serves the API in processes of their own, which share the port. */
async function startApis(shared: Shared): Promise<ApiAddresses> {
  const { config, metrics, checks, log, hooks } = shared;
  let processes: ApiProcesses | undefined;
  const onDeath = addApiProcessGauges(metrics, () => processes?.countReady() ?? 0);
  processes = await startApiProcesses({ count: config.apiProcesses, log, onDeath }, hooks);
  checks.push(...processes.checks);
  shared.readOthers = processes.readMetrics;
  const { addresses } = processes;
  shared.urls = { ...shared.urls, ...addresses };
  return addresses;
}

/** All addresses. That of the dashboard: as configured, else on the listener that has the admin API. */
function addressesOf(
  { hasDashboard, dashboardUrl, secrets, oidc }: Config,
  urls: ReturnType<typeof publicUrls>,
  others: Pick<Ready, 'adminUrl'>,
): ApiAddresses {
  const ready = { ...urls, ...others };
  if (!hasDashboard || (secrets.adminToken ?? oidc) === undefined) return ready;
  return { ...ready, dashboardUrl: `${dashboardUrl ?? others.adminUrl ?? urls.baseUrl}/dashboard` };
}

/** Shows loopback and wildcard addresses of either family as localhost. */
function adminUrl({ tls, adminHost }: Config, port: number): string {
  const isLocal = ['127.0.0.1', '::1', '0.0.0.0', '::'].includes(adminHost);
  const host = isLocal ? 'localhost' : adminHost.includes(':') ? `[${adminHost}]` : adminHost;
  return `${tls ? 'https' : 'http'}://${host}:${port}`;
}
