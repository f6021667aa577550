import type { Config } from '../../config/config.js';
import { createLogger, flushLogger, type Logger } from '../core/logger.js';
import { createOutageLogs } from '../core/outage-log.js';
import type { ShutdownHooks } from '../core/shutdown.js';
import { version } from '../core/version.js';
import type { Metrics } from '../ops/metrics.js';
import type { LogRelay } from '../telemetry/log-relay.js';

/** A process's logger, and the relay of its lines if anything is exported. */
export type OpenLog = { log: Logger; relay: LogRelay | undefined };

/** Opens the logger; its lines are flushed at shutdown. */
export function openLog(
  { logLevel, telemetry }: Pick<Config, 'logLevel' | 'telemetry'>,
  hooks: ShutdownHooks,
): OpenLog {
  const relay = telemetry === undefined ? undefined : { take: undefined };
  const log = createLogger({ level: logLevel, fd: 2, relay });
  hooks.add(() => flushLogger(log));
  return { log, relay };
}

type TelemetryDeps = OpenLog & {
  config: Pick<Config, 'telemetry'>;
  roles: { api: boolean; worker: boolean };
  metrics: Pick<Metrics, 'snapshot'>;
};

/** Exports traces, metrics and logs by OTLP if the settings say so. A collector that is away costs lines of the log, no more. */
export async function openTelemetry(
  { config, roles, log, relay, metrics }: TelemetryDeps,
  hooks: ShutdownHooks,
): Promise<void> {
  if (config.telemetry === undefined || relay === undefined) return;
  const { startTelemetry } = await import('../telemetry/sdk/start.js');
  const outages = createOutageLogs(log, () => performance.now());
  const stop = await startTelemetry({
    signals: config.telemetry,
    role: Object.entries(roles)
      .flatMap(([role, isOn]) => (isOn ? [role] : []))
      .join('+'),
    version: version(),
    readMetrics: metrics.snapshot,
    relay,
    reportOf: (signal) => ({
      failed: (reason) => outages.for(signal).failed({ signal, reason }, 'telemetry is not exported'),
      recovered: () => outages.for(signal).recovered({ signal }, 'telemetry is exported again'),
    }),
  });
  hooks.add(stop);
}
