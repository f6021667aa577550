import { setFlagsFromString } from 'node:v8';
import { type Config, publicUrls } from '../../config/config.js';
import type { Logger } from '../core/logger.js';
import type { ShutdownHooks } from '../core/shutdown.js';
import type { WitnessSetup } from '../logs/set-up-witnesses.js';
import { addExportGauges, shipmentCounters } from '../ops/export-gauges.js';
import { addClockGauge, addLogKeyGauge, addPipelineGauges, attemptCounters } from '../ops/gauges.js';
import { createMetrics } from '../ops/metrics.js';
import { type Check, createOps, isReady } from '../ops/ops-listener.js';
import { addApiGauges, addProcessGauges } from '../ops/process-gauges.js';
import { addQueueGauges } from '../ops/queue-gauges.js';
import { addWitnessGauges, alarmCounter } from '../ops/witness-gauges.js';
import type { JobSender } from '../pipeline/jobs/job-sender.js';
import { openRegister } from '../pipeline/register/open-register.js';

/**
 * The addresses of a started process; a worker has only `opsUrl`. `projectId` is the first project of `attest up`,
 * `newLogDomain` the log domain that this start generated.
 */
export type Ready = {
  readonly baseUrl?: string;
  readonly verifyUrl?: string;
  readonly opsUrl: string;
  /** Set where the admin API has a listener of its own. */
  readonly adminUrl?: string;
  /** Set where there is a dashboard. */
  readonly dashboardUrl?: string;
  readonly projectId?: string;
  readonly newLogDomain?: string;
};

/** The prefix of the stream and its subjects. */
const QUEUE_PREFIX = 'jobs';

/**
 * V8's heap growing limit in percent of live memory. An API process under load takes 195 MB with it and 370 MB with the
 * default.
 */
const HEAP_GROWING_PERCENT = 40;

/** The roles of a process; `attest up` has both. */
type ProcessOptions = {
  config: Config;
  roles: { api: boolean; worker: boolean };
  witnesses: readonly WitnessSetup[];
  log: Logger;
  hooks: ShutdownHooks;
};

/**
 * Starts the roles of a process and its ops listener in order of dependency. Shutdown runs in reverse: it answers requests
 * in flight, then finishes jobs in progress. Loads only the modules of its roles: those of the API take 0.3 s.
 */
export async function startProcess({ config, roles, witnesses, log, hooks }: ProcessOptions): Promise<Ready> {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWING_PERCENT}`);
  const register = await openRegister(config.checkpointRegister);
  const metrics = createMetrics();
  const clients = new Map<string, JobSender>();
  addQueueGauges(metrics, clients);
  addProcessGauges(metrics, config, witnesses);
  let phase = 'the process is starting';
  const checks: Check[] = [{ name: 'process', check: async () => phase || undefined }];
  const ops = createOps({ checks, metrics, log });
  hooks.add(ops.close);
  const { port: opsPort } = await ops.listen({ host: config.opsHost, port: config.opsPort });
  const opsUrl = `http://localhost:${opsPort}`;
  let apiPort = config.port;
  let admin: Pick<Ready, 'adminUrl'> = {};
  const urls = () => publicUrls(config, apiPort);
  const baseUrl = () => urls().baseUrl;
  const shared = { config, queuePrefix: QUEUE_PREFIX, register, log, baseUrl };
  if (roles.worker) {
    const { startWorker } = await import('./worker.js');
    const options = {
      ...shared,
      witnesses,
      observeAlarm: alarmCounter(metrics, witnesses),
      observeAttempts: attemptCounters(metrics),
      observeShipments: shipmentCounters(metrics),
    };
    const worker = await startWorker(options, hooks);
    checks.push(...worker.checks);
    clients.set('worker', worker.jobs);
    addPipelineGauges(metrics, worker.pipeline.pool);
    addLogKeyGauge(metrics, worker.readLogKeys);
    addWitnessGauges(metrics, worker.pipeline.pool);
    addExportGauges(metrics, worker.pipeline.pool, worker.pipeline.exports.spoolBudget.bytesInUse);
  }
  if (roles.api) {
    const { startApi } = await import('./api.js');
    const options = {
      ...shared,
      verifyUrl: () => urls().verifyUrl,
      isReady: () => isReady(checks),
      observe: metrics.observeRequest,
    };
    const api = await startApi(options, hooks);
    checks.push(...api.checks);
    clients.set('api', api.jobs);
    addApiGauges(metrics, api.pool, api.sequencers.queued);
    addClockGauge(metrics, api.offsetSeconds);
    if (api.adminServer !== undefined && config.adminPort !== undefined) {
      const { port } = await api.adminServer.listen({ host: config.adminHost, port: config.adminPort });
      admin = { adminUrl: adminUrl(config, port) };
    }
    apiPort = (await api.server.listen({ host: config.host, port: config.port })).port;
  }
  phase = '';
  hooks.add(async () => {
    phase = 'the process is stopping';
  });
  return roles.api ? addressesOf(config, urls(), { opsUrl, ...admin }) : { opsUrl };
}

/** All addresses. That of the dashboard: as configured, else on the listener that has the admin API. */
function addressesOf(
  { hasDashboard, dashboardUrl, secrets }: Config,
  urls: ReturnType<typeof publicUrls>,
  others: Pick<Ready, 'opsUrl' | 'adminUrl'>,
): Ready {
  const ready = { ...urls, ...others };
  if (!hasDashboard || secrets.adminToken === undefined) return ready;
  return { ...ready, dashboardUrl: `${dashboardUrl ?? others.adminUrl ?? urls.baseUrl}/dashboard` };
}

/** Shows loopback and wildcard addresses of either family as localhost. */
function adminUrl({ tls, adminHost }: Config, port: number): string {
  const isLocal = ['127.0.0.1', '::1', '0.0.0.0', '::'].includes(adminHost);
  const host = isLocal ? 'localhost' : adminHost.includes(':') ? `[${adminHost}]` : adminHost;
  return `${tls ? 'https' : 'http'}://${host}:${port}`;
}
