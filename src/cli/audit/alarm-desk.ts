/** Takes the alarms of rounds: each is told once, for as long as it holds. */
import type { Alarm } from './alarm.js';
import { alarmId } from './alarm.js';
import type { AlarmWebhook } from './alarm-webhook.js';
import type { AuditEvents } from './audit-events.js';
import type { AuditMetrics } from './audit-metrics.js';
import { writeEvidence } from './evidence.js';
import type { Outcome } from './monitor.js';

type DeskDeps = {
  readonly events: AuditEvents;
  readonly metrics: AuditMetrics;
  readonly webhook: AlarmWebhook | undefined;
  /** Directory for evidence. */
  readonly evidence: string | undefined;
  readonly now: () => Date;
};

/** Takes outcomes. */
export type AlarmDesk = {
  take(outcome: Outcome): Promise<void>;
  /** The alarms that hold now. */
  open(): Alarm[];
  isOpen(alarm: Alarm): boolean;
};

/** Creates the desk. */
export function createAlarmDesk({ events, metrics, webhook, evidence, now }: DeskDeps): AlarmDesk {
  const open = new Map<string, Alarm>();
  const raise = async (id: string, alarm: Alarm, { watched }: Outcome) => {
    open.set(id, alarm);
    metrics.alarm(alarm.origin, alarm.kind);
    const folder =
      evidence === undefined
        ? undefined
        : await writeEvidence(evidence, alarm, watched, now()).catch((error: Error) => error);
    events.alarm(alarm, typeof folder === 'string' ? folder : undefined);
    webhook?.send({
      id: `alm_${id}`,
      type: 'log.alarm',
      created: now().toISOString(),
      data: alarmData(alarm),
    });
    if (folder instanceof Error)
      events.trouble(alarm.origin, `the evidence cannot be written: ${folder.message}`);
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
        events.resolved(alarm);
      }
      for (const alarm of alarms) if (!open.has(alarmId(alarm))) await raise(alarmId(alarm), alarm, outcome);
    },
    open: () => [...open.values()],
    isOpen: (alarm) => open.has(alarmId(alarm)),
  };
}

function alarmData({ kind, origin, message, evidence }: Alarm): object {
  const notes = evidence && { notes: [evidence.first.envelope, evidence.second.envelope] };
  return { kind, origin, message, ...notes };
}
