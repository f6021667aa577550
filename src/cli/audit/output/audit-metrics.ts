/** The metrics of an audit that follows logs, in the Prometheus text format. */
import { addBuildInfo } from '../../../server/ops/build-info.js';
import { createMetrics } from '../../../server/ops/metrics.js';
import { createOps } from '../../../server/ops/ops-listener.js';
import type { AlarmKind } from '../alarm/alarm.js';
import type { Outcome } from '../monitor.js';

/** Counts what happens, and serves it. */
export type AuditMetrics = {
  /** `at` is when the round ended. */
  observe(outcome: Outcome, at: Date): void;
  alarm(origin: string, kind: AlarmKind): void;
  close(): Promise<void>;
};

type LogFigures = {
  size: number;
  behind: number;
  freshSeconds: number;
  checkedSeconds: number;
  open: number;
};

/** Disabled metrics. */
export function noMetrics(): AuditMetrics {
  return { observe: () => {}, alarm: () => {}, close: async () => {} };
}

/** Serves `/metrics` and `/livez` without authentication. Rejects if the address is taken. */
export async function serveMetrics(
  address: { host: string; port: number },
  onListening: (port: number) => void,
): Promise<AuditMetrics> {
  const metrics = createMetrics();
  addBuildInfo(metrics);
  const logs = new Map<string, LogFigures>();
  const gauge = (name: string, help: string, read: (figures: LogFigures) => number) =>
    metrics.addGauge({
      name,
      help,
      labelNames: ['origin'],
      read: () => [...logs].map(([origin, figures]) => ({ labels: { origin }, value: read(figures) })),
    });
  gauge('attest_audit_verified_entries', 'Entries of the log that are verified', ({ size }) => size);
  gauge(
    'attest_audit_lag_entries',
    'Entries that the log shows and that are not verified',
    ({ behind }) => behind,
  );
  gauge(
    'attest_audit_last_checkpoint_time_seconds',
    'When the log last showed a larger tree or a cosignature, in Unix time',
    ({ freshSeconds }) => freshSeconds,
  );
  gauge(
    'attest_audit_last_round_time_seconds',
    'When the log was last audited without trouble, in Unix time; 0 if never',
    ({ checkedSeconds }) => checkedSeconds,
  );
  gauge('attest_audit_open_alarms', 'Alarms that hold now', ({ open }) => open);
  const alarms = metrics.addCounter('attest_audit_alarms_total', 'Alarms raised', ['origin', 'kind']);
  const troubles = metrics.addCounter('attest_audit_troubles_total', 'What could not be compared', [
    'origin',
  ]);
  const ops = createOps({ metrics, checks: [], log: { error: () => {} } });
  const { port } = await ops.listen(address);
  onListening(port);
  return {
    observe: (outcome, at) => {
      const { origin, trouble, figures } = figuresOf(outcome, at, logs.get(outcome.watched.log.key.name));
      logs.set(origin, figures);
      troubles.add(trouble, { origin });
    },
    alarm: (origin, kind) => alarms.add(1, { origin, kind }),
    close: ops.close,
  };
}

function figuresOf(
  { watched, round, unreachable, alarms, verifiedSize, freshAt }: Outcome,
  at: Date,
  before?: LogFigures,
) {
  const trouble = (round?.troubles.length ?? 0) + (unreachable === undefined ? 0 : 1);
  const figures: LogFigures = {
    size: verifiedSize,
    behind: round === undefined ? (before?.behind ?? 0) : Math.max(0, (round.main?.size ?? 0) - verifiedSize),
    freshSeconds: freshAt.getTime() / 1000,
    checkedSeconds: trouble === 0 ? at.getTime() / 1000 : (before?.checkedSeconds ?? 0),
    open: alarms.length,
  };
  return { origin: watched.log.key.name, trouble, figures };
}
