/** A round of an audit under way. */
import type { AuditedTree } from '../../../proof/log/audit.js';
import type { Alarm } from '../alarm/alarm.js';
import type { SeenCheckpoint } from '../checkpoint/seen-checkpoint.js';
import type { Net } from '../source/log-source.js';
import type { LogMemory } from '../state/log-memory.js';
import type { WatchedLog } from '../watched-log.js';
import type { PrefixFinder } from './find-prefix.js';

/** What a round needs besides the log. */
export type RoundDeps = {
  readonly net: Net;
  readonly now: () => Date;
  /** Called before entries are read, with their number; returns the callback of progress. */
  readonly startProgress: (entries: number) => (entries: number) => void;
  /** Called with the tree of the entries read so far, which the next round may start from, and the checkpoint ahead. */
  readonly onRead: (tree: AuditedTree, ahead: SeenCheckpoint) => Promise<void> | void;
  /** Whether something that caches and races explain as well has lasted too long to be explained by them. */
  readonly isOverdue: (what: string) => boolean;
};

/** What a round has come to. */
export type Course = {
  readonly deps: RoundDeps;
  readonly watched: WatchedLog;
  readonly memory: LogMemory;
  readonly findPrefix: PrefixFinder;
  readonly alarms: Alarm[];
  readonly troubles: string[];
  /** Whether the log is intact so far, whatever others show. */
  isSound: boolean;
};

/** Reports that the log is not intact. */
export function report(course: Course, message: string, more: Pick<Alarm, 'evidence'> = {}): void {
  course.isSound = false;
  course.alarms.push({ kind: 'not_intact', origin: course.watched.log.key.name, message, ...more });
}

/** The checkpoints without some. */
export function dropOdd(all: readonly SeenCheckpoint[], odd: ReadonlySet<SeenCheckpoint>): SeenCheckpoint[] {
  return all.filter((one) => !odd.has(one));
}
