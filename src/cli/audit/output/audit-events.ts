/** The output of an audit: text on standard error for people, or an object a line on standard output. */

import { count } from '../../../proof/export/object-check.js';
import { printable } from '../../../protocol/printable.js';
import { type Cli, print, printError } from '../../cli.js';
import { openProgress, type Progress } from '../../output/progress.js';
import { type Alarm, alarmId } from '../alarm/alarm.js';
import type { Outcome } from '../monitor.js';

/** Prints events. */
export type AuditEvents = {
  /** A round that verified something new. */
  verified(outcome: Outcome): void;
  alarm(alarm: Alarm, evidence: string | undefined): void;
  resolved(alarm: Alarm): void;
  trouble(origin: string, message: string): void;
  /** Shows a bar on a terminal, and a line every ten seconds elsewhere. */
  startProgress(origin: string, entries: number): (entries: number) => void;
  /** Erases the bar. */
  endProgress(): void;
  listening(port: number): void;
  stopped(): void;
};

const LINE_EVERY_MS = 10_000;

/** Prints an event: its members as JSON, or else the text, if there is one. */
type Say = (event: string, members: object, text?: string) => void;

/** Creates the printer. Without `follow` a report follows, so that neither verification nor end are printed. */
export function createEvents(cli: Cli, { json, follow }: { json: boolean; follow: boolean }): AuditEvents {
  let bar: Progress | undefined;
  const say: Say = (event, members, text) => {
    bar?.clear();
    if (json) print(cli, JSON.stringify({ event, time: cli.now().toISOString(), ...members }));
    else if (text !== undefined) (event === 'verified' ? print : printError)(cli, printable(text));
  };
  return {
    ...alarmEvents(say),
    verified: ({ watched, round, verifiedSize }) => {
      if (!follow || round === undefined) return;
      const origin = watched.log.key.name;
      const { read, confirmed, main } = round;
      const members = {
        origin,
        tree_size: verifiedSize,
        entries_read: read,
        checkpoints_confirmed: confirmed,
        checkpoint: main?.envelope,
      };
      say(
        'verified',
        members,
        `ok      ${origin}: ${count(verifiedSize, 'entry', 'entries')}, ${read} read now`,
      );
    },
    startProgress: (origin, entries) => {
      const now = () => cli.now().getTime();
      bar = openProgress({ output: cli.stderr, now }, `reading ${printable(origin)}`, entries, String);
      let read = 0;
      let saidAt = now();
      return (count) => {
        read += count;
        bar?.add(count);
        if (now() - saidAt < LINE_EVERY_MS || (cli.stderr.isTTY && !json)) return;
        saidAt = now();
        const members = { origin, entries_read: read, entries };
        say('progress', members, `reading ${origin}: ${read} of ${entries} entries`);
      };
    },
    endProgress: () => bar?.clear(),
    listening: (port) => say('listening', { port }, `metrics on port ${port}`),
    stopped: () => follow && say('stopped', {}),
  };
}

function alarmEvents(say: Say): Pick<AuditEvents, 'alarm' | 'resolved' | 'trouble'> {
  return {
    alarm: (alarm, evidence) => {
      const { kind, origin, message } = alarm;
      const notes = alarm.evidence && [alarm.evidence.first.envelope, alarm.evidence.second.envelope];
      const files = { ...(notes && { notes }), ...(evidence !== undefined && { evidence }) };
      const where = evidence === undefined ? '' : `; evidence in ${evidence}`;
      const members = { id: alarmId(alarm), kind, origin, message, ...files };
      say('alarm', members, `ALARM   ${kind} ${origin}: ${message}${where}`);
    },
    resolved: (alarm) => {
      const { kind, origin, message } = alarm;
      const members = { id: alarmId(alarm), kind, origin, message };
      say('resolved', members, `over    ${kind} ${origin}: ${message}`);
    },
    trouble: (origin, message) => say('trouble', { origin, message }, `trouble ${origin}: ${message}`),
  };
}
