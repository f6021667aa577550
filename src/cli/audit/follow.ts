/** Runs audits: one round of each log, or one after the other for ever. */
import { setTimeout as pause } from 'node:timers/promises';
import { exponentialMs } from '../../protocol/backoff.js';
import { exitCodeOf } from './alarm/alarm.js';
import type { AlarmDispatcher } from './alarm/alarm-dispatcher.js';
import type { Monitor, Outcome } from './monitor.js';
import type { AuditEvents } from './output/audit-events.js';
import type { AuditMetrics } from './output/audit-metrics.js';
import { openWatchList, type Refresh, type WatchList } from './watch-list.js';
import type { WatchedLog } from './watched-log.js';

/** The dependencies of rounds. */
export type FollowDeps = {
  readonly monitor: Monitor;
  readonly dispatcher: AlarmDispatcher;
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
  for (const watched of logs) outcomes.push(await settle(deps, await audit(deps, watched)));
  return outcomes;
}

/**
 * Audits the logs again and again until the signal aborts, or an alarm says that a log is not intact. A round with
 * trouble is followed by a longer pause, up to five minutes. `refresh` reads the trust roots again, every ten minutes and
 * before a log is said not to be intact: its keys may have been rotated. Returns the exit code.
 */
export async function followLogs(
  deps: FollowDeps,
  refresh: Refresh,
  { pollMs, keepGoing }: FollowOptions,
): Promise<number> {
  const { dispatcher, events, signal } = deps;
  const reported = new Map<string, ReadonlySet<string>>();
  const logs = openWatchList(deps, refresh);
  let failures = 0;
  while (!signal.aborted) {
    await logs.refreshIfDue();
    const outcomes: Outcome[] = [];
    for (const watched of logs.all()) outcomes.push(await auditTwice(deps, logs, watched));
    if (signal.aborted) break;
    for (const outcome of outcomes) reportTroubles(events, outcome, reported);
    if (!keepGoing && dispatcher.open().some(({ kind }) => kind === 'split_view' || kind === 'not_intact'))
      break;
    failures = outcomes.some(({ unreachable }) => unreachable) ? failures + 1 : 0;
    const waitMs = exponentialMs(failures, { firstMs: pollMs, maxMs: Math.max(pollMs, MAX_BACKOFF_MS) });
    await pause(waitMs, undefined, { signal }).catch(() => {});
  }
  events.stopped();
  return exitCodeOf(dispatcher.open());
}

/** Audits a log, and again if new trust roots may make it intact. */
async function auditTwice(deps: FollowDeps, logs: WatchList, watched: WatchedLog): Promise<Outcome> {
  const first = await audit(deps, watched);
  const isNew = first.alarms.some((alarm) => alarm.kind === 'not_intact' && !deps.dispatcher.isOpen(alarm));
  if (!isNew || deps.signal.aborted || !(await logs.refresh())) return settle(deps, first);
  const again = logs.all().find(({ log }) => log.key.name === watched.log.key.name);
  return settle(deps, again ? await audit(deps, again) : first);
}

function audit({ monitor, events }: FollowDeps, watched: WatchedLog): Promise<Outcome> {
  return monitor.audit(watched).finally(events.endProgress);
}

async function settle(
  { dispatcher, events, metrics, now, signal }: FollowDeps,
  outcome: Outcome,
): Promise<Outcome> {
  if (signal.aborted) return outcome;
  metrics.observe(outcome, now());
  await dispatcher.take(outcome);
  if ((outcome.round?.read ?? 0) > 0) events.verified(outcome);
  return outcome;
}

/** Reports each trouble when it begins. */
function reportTroubles(
  events: AuditEvents,
  { watched, round, unreachable }: Outcome,
  reported: Map<string, ReadonlySet<string>>,
): void {
  const { name } = watched.log.key;
  const troubles = new Set([...(unreachable ? [unreachable.message] : []), ...(round?.troubles ?? [])]);
  for (const trouble of troubles) if (!reported.get(name)?.has(trouble)) events.trouble(name, trouble);
  reported.set(name, troubles);
}
