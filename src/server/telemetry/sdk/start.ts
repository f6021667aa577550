/** OpenTelemetry's SDK. Its packages are loaded from here alone, and only if something is exported. */
import { randomUUID } from 'node:crypto';
import type { LogRelay } from '../log-relay.js';
import type { ReadMetrics } from './metrics.js';
import type { ExportReport } from './watch-exports.js';

/** What to export, and whose it is. */
type TelemetryOptions = {
  signals: { traces: boolean; metrics: boolean; logs: boolean; metricIntervalMs: number };
  /** The role of the process, such as `api`, and the version of the program. */
  role: string;
  version: string;
  readMetrics: ReadMetrics;
  relay: LogRelay;
  /** Returns what learns of the exports of a signal. */
  reportOf: (signal: 'traces' | 'metrics' | 'logs') => ExportReport;
};

/** The longest that a shutdown waits for the collector. */
const FLUSH_MS = 5_000;

/**
 * Starts to export. Rejects if a package is missing.
 *
 * @returns what flushes, for five seconds at most, and ends it
 */
export async function startTelemetry(options: TelemetryOptions): Promise<() => Promise<void>> {
  const { signals, relay, readMetrics, reportOf } = options;
  const ends: (() => Promise<void>)[] = [];
  try {
    const resource = await resourceOf(options);
    if (signals.traces) {
      const { exportTraces } = await import('./traces.js');
      ends.push(await exportTraces(resource, reportOf('traces')));
    }
    if (signals.metrics) {
      const { exportMetrics } = await import('./metrics.js');
      const source = { read: readMetrics, intervalMs: signals.metricIntervalMs };
      ends.push(await exportMetrics(resource, source, reportOf('metrics')));
    }
    if (signals.logs) {
      const { exportLogs } = await import('./logs.js');
      ends.push(await exportLogs(resource, relay, reportOf('logs')));
    }
  } catch (error) {
    throw explainMissing(error);
  }
  return async () => {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, FLUSH_MS);
    });
    await Promise.race([Promise.allSettled(ends.map((end) => end())), late]);
    clearTimeout(timer);
  };
}

/** OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES go before what the process says of itself. */
async function resourceOf({ role, version }: TelemetryOptions) {
  const { defaultResource, detectResources, envDetector, resourceFromAttributes } = await import(
    '@opentelemetry/resources'
  );
  const own = resourceFromAttributes({
    'service.name': 'attestation-service',
    'service.version': version,
    'service.instance.id': randomUUID(),
    'process.pid': process.pid,
    'attest.role': role,
  });
  return defaultResource()
    .merge(own)
    .merge(detectResources({ detectors: [envDetector] }));
}

function explainMissing(error: unknown): unknown {
  if (Object(error).code !== 'ERR_MODULE_NOT_FOUND') return error;
  return new Error(
    'OTEL_EXPORTER_OTLP_ENDPOINT is set, and a package of OpenTelemetry is missing; install the service with its optional packages, or unset it',
    { cause: error },
  );
}
