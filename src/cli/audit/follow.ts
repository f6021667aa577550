/** Runs audits: one round of each log, or one after the other for ever. */
import { setTimeout as pause } from 'node:timers/promises';
import { exitCodeOf } from './alarm.js';
import type { AlarmDesk } from './alarm-desk.js';
import type { AuditEvents } from './audit-events.js';
import type { AuditMetrics } from './audit-metrics.js';
import type { Monitor, Outcome } from './monitor.js';
import type { WatchedLog } from './watched-log.js';

/** What rounds are run with. */
export type FollowDeps = {
  readonly monitor: Monitor;
  readonly desk: AlarmDesk;
  readonly events: AuditEvents;
  readonly metrics: AuditMetrics;
  readonly now: () => Date;
  readonly signal: AbortSignal;
};

/** `keepGoing` follows logs also after they were found not to be intact. */
type FollowOptions = { readonly pollMs: number; readonly keepGoing: boolean };

const MAX_BACKOFF_MS = 300_000;

/** Audits each log once. */
export async function auditOnce(deps: FollowDeps, logs: readonly WatchedLog[]): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const watched of logs) outcomes.push(await runOne(deps, watched));
  return outcomes;
}

/**
 * Audits the logs again and again until the signal aborts, or an alarm says that a log is not intact. A round with
 * trouble is followed by a longer pause, up to five minutes. Returns the exit code.
 */
export async function followLogs(
  deps: FollowDeps,
  logs: readonly WatchedLog[],
  { pollMs, keepGoing }: FollowOptions,
): Promise<number> {
  const { desk, events, signal } = deps;
  const told = new Map<string, ReadonlySet<string>>();
  let failures = 0;
  while (!signal.aborted) {
    const outcomes = await auditOnce(deps, logs);
    if (signal.aborted) break;
    for (const outcome of outcomes) tellTroubles(events, outcome, told);
    if (!keepGoing && desk.open().some(({ kind }) => kind === 'split_view' || kind === 'not_intact')) break;
    failures = outcomes.some(({ unreachable }) => unreachable) ? failures + 1 : 0;
    const waitMs = Math.min(pollMs * 2 ** Math.min(failures, 20), Math.max(pollMs, MAX_BACKOFF_MS));
    await pause(waitMs, undefined, { signal }).catch(() => {});
  }
  events.stopped();
  return exitCodeOf(desk.open());
}

async function runOne({ monitor, desk, events, metrics, now, signal }: FollowDeps, watched: WatchedLog) {
  const outcome = await monitor.audit(watched).finally(events.endProgress);
  if (signal.aborted) return outcome;
  metrics.observe(outcome, now());
  await desk.take(outcome);
  if ((outcome.round?.read ?? 0) > 0) events.verified(outcome);
  return outcome;
}

/** Tells each trouble when it begins. */
function tellTroubles(
  events: AuditEvents,
  { watched, round, unreachable }: Outcome,
  told: Map<string, ReadonlySet<string>>,
): void {
  const { name } = watched.log.key;
  const troubles = new Set([...(unreachable ? [unreachable.message] : []), ...(round?.troubles ?? [])]);
  for (const trouble of troubles) if (!told.get(name)?.has(trouble)) events.trouble(name, trouble);
  told.set(name, troubles);
}
