/** Dispatches the alarms of rounds, each once for as long as it holds. */

import type { Outcome } from '../monitor.js';
import type { AuditEvents } from '../output/audit-events.js';
import type { AuditMetrics } from '../output/audit-metrics.js';
import type { Alarm } from './alarm.js';
import { alarmId } from './alarm.js';
import type { AlarmWebhook } from './alarm-webhook.js';
import { writeEvidence } from './evidence.js';

type DispatcherDeps = {
  readonly events: AuditEvents;
  readonly metrics: AuditMetrics;
  readonly webhook: AlarmWebhook | undefined;
  /** Directory for evidence. */
  readonly evidence: string | undefined;
  readonly now: () => Date;
};

/** Dispatches the alarms of outcomes. */
export type AlarmDispatcher = {
  take(outcome: Outcome): Promise<void>;
  /** The alarms that hold now. */
  open(): Alarm[];
  isOpen(alarm: Alarm): boolean;
};

/** Creates the dispatcher. */
export function createAlarmDispatcher({
  events,
  metrics,
  webhook,
  evidence,
  now,
}: DispatcherDeps): AlarmDispatcher {
  const open = new Map<string, Alarm>();
  /** The alarms whose evidence could not be written yet. */
  const unkept = new Set<string>();
  const keep = async (id: string, alarm: Alarm, { watched }: Outcome) => {
    if (evidence === undefined) return undefined;
    const folder = await writeEvidence(evidence, alarm, watched, now()).catch((error: Error) => error);
    if (folder instanceof Error) unkept.add(id);
    else unkept.delete(id);
    return folder;
  };
  const raise = async (id: string, alarm: Alarm, outcome: Outcome) => {
    open.set(id, alarm);
    metrics.alarm(alarm.origin, alarm.kind);
    const folder = await keep(id, alarm, outcome);
    events.alarm(alarm, typeof folder === 'string' ? folder : undefined);
    const created = now().toISOString();
    webhook?.send({ id: webhookId(id, created), type: 'log.alarm', created, data: alarmData(alarm) });
    if (folder instanceof Error)
      events.trouble(alarm.origin, `the evidence cannot be written: ${folder.message}`);
  };
  const takeOne = async (alarm: Alarm, outcome: Outcome) => {
    const id = alarmId(alarm);
    if (!open.has(id)) await raise(id, alarm, outcome);
    else if (unkept.has(id)) await keep(id, open.get(id) ?? alarm, outcome);
  };
  return {
    take: async (outcome) => {
      const { alarms, watched, unreachable } = outcome;
      const held = new Set(alarms.map(alarmId));
      // While the log cannot be read, what was wrong with it is neither seen nor over.
      const isOver = ([id, { origin, kind }]: [string, Alarm]) =>
        origin === watched.log.key.name && !held.has(id) && (unreachable === undefined || kind === 'stale');
      for (const [id, alarm] of [...open].filter(isOver)) {
        open.delete(id);
        unkept.delete(id);
        events.resolved(alarm);
      }
      for (const alarm of alarms) await takeOne(alarm, outcome);
    },
    open: () => [...open.values()],
    isOpen: (alarm) => open.has(alarmId(alarm)),
  };
}

/** One id for an hour: a monitor that restarts sends no new one, and an alarm that comes again later is not dropped. */
function webhookId(id: string, created: string): string {
  return `alm_${id}_${created.slice(0, 'yyyy-mm-ddThh'.length).replaceAll(/[-T]/g, '')}`;
}

function alarmData({ kind, origin, message, evidence }: Alarm): object {
  const notes = evidence && { notes: [evidence.first.envelope, evidence.second.envelope] };
  return { kind, origin, message, ...notes };
}
