/** Runs an audit as a command: with its state, metrics, webhook and signals. */

import { printable } from '../../protocol/printable.js';
import { type Cli, print, printError } from '../cli.js';
import { errorJson, errorText } from '../output/report-error.js';
import { exitCodeOf } from './alarm/alarm.js';
import { createAlarmDispatcher } from './alarm/alarm-dispatcher.js';
import { openWebhook } from './alarm/alarm-webhook.js';
import type { AuditFlags, WatchOptions } from './audit-flags.js';
import { auditOnce, type FollowDeps, followLogs } from './follow.js';
import { createMonitor, type Outcome } from './monitor.js';
import { type AuditEvents, createEvents } from './output/audit-events.js';
import { noMetrics, serveMetrics } from './output/audit-metrics.js';
import { formatOutcomes, outcomesJson } from './output/audit-report.js';
import { forgetfulState, openStateFile, type StateFile } from './state/audit-state.js';
import type { Refresh } from './watch-list.js';

/** The options of an audit. */
type AuditRun = {
  readonly flags: AuditFlags;
  readonly options: WatchOptions;
  readonly refresh: Refresh;
  /** Where the trust roots come from. */
  readonly trustOrigin: string;
};

const RETRY_DELAYS_MS = [500, 1_000, 2_000, 4_000];
const REQUEST_TIMEOUT_MS = 15_000;
const STOP_SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** Races and caches explain what differs for a few rounds, at most a minute. */
const MAX_GRACE_MS = 60_000;
const GRACE_ROUNDS = 3;

/** Runs the audit and sets the exit code. Throws what prevents it. */
export async function runAudit(cli: Cli, run: AuditRun): Promise<void> {
  const { flags } = run;
  const state = flags.state === undefined ? forgetfulState() : await openStateFile(flags.state);
  try {
    await runWithState(cli, run, state);
  } finally {
    await state.close();
  }
}

async function runWithState(cli: Cli, run: AuditRun, state: StateFile): Promise<void> {
  const { flags, options } = run;
  const follow = flags.follow === true;
  const events = createEvents(cli, { json: flags.json === true, follow });
  const metrics = options.metrics ? await serveMetrics(options.metrics, events.listening) : noMetrics();
  const onFailure = (message: string) => events.trouble('webhook', message);
  const webhook = options.webhook && openWebhook({ now: cli.now, onFailure }, options.webhook);
  const stopping = new AbortController();
  const dispatcher = createAlarmDispatcher({
    events,
    metrics,
    webhook,
    evidence: flags.evidence,
    now: cli.now,
  });
  const monitor = createMonitor({
    net: { signal: stopping.signal, retryDelaysMs: RETRY_DELAYS_MS, timeoutMs: REQUEST_TIMEOUT_MS },
    now: cli.now,
    state,
    demands: { maxAgeMs: options.maxAgeMs, isQuorum: options.quorum },
    graceMs: follow ? Math.min(MAX_GRACE_MS, GRACE_ROUNDS * options.pollMs) : 0,
    startProgress: events.startProgress,
  });
  const deps: FollowDeps = { monitor, dispatcher, events, metrics, now: cli.now, signal: stopping.signal };
  const stop = (signal: NodeJS.Signals) => {
    if (stopping.signal.aborted) process.exit(signal === 'SIGINT' ? 130 : 143);
    stopping.abort();
  };
  for (const signal of STOP_SIGNALS) process.on(signal, stop);
  try {
    if (follow)
      cli.exitCode = await followLogs(deps, run.refresh, { ...options, keepGoing: flags.keepGoing === true });
    else await runOnce(cli, run, deps, events);
  } finally {
    await webhook?.settle();
    for (const signal of STOP_SIGNALS) process.off(signal, stop);
    await metrics.close();
  }
}

async function runOnce(cli: Cli, run: AuditRun, deps: FollowDeps, events: AuditEvents): Promise<void> {
  const outcomes = await auditOnce(deps, run.refresh.logs);
  const json = run.flags.json === true;
  const alarms = outcomes.flatMap((outcome) => outcome.alarms);
  const conclusive = outcomes.filter(
    ({ unreachable, alarms: own }) => unreachable === undefined || own.length > 0,
  );
  const unread = outcomes.flatMap(({ unreachable }) => unreachable ?? []);
  if (conclusive.length > 0) report(cli, conclusive, run);
  for (const error of unread)
    printError(cli, json ? JSON.stringify({ error: errorJson(error) }) : `error: ${errorText(error)}`);
  const isUnchecked = unread.length > 0 || outcomes.some(({ round }) => (round?.troubles.length ?? 0) > 0);
  for (const { watched, round } of outcomes)
    for (const trouble of round?.troubles ?? []) events.trouble(watched.log.key.name, trouble);
  cli.exitCode = exitCodeOf(alarms) || (isUnchecked ? 2 : 0);
}

function report(cli: Cli, outcomes: readonly Outcome[], { flags, trustOrigin }: AuditRun): void {
  if (flags.json) print(cli, JSON.stringify(outcomesJson(outcomes, trustOrigin)));
  else for (const line of formatOutcomes(outcomes, trustOrigin)) print(cli, printable(line));
}
