/** A round of an audit. */
import type { AuditedTree } from '../../../proof/log/audit.js';
import type { Alarm } from '../alarm/alarm.js';
import type { SeenCheckpoint } from '../checkpoint/seen-checkpoint.js';
import type { Net } from '../source/log-source.js';
import type { LogMemory } from '../state/log-memory.js';
import type { WatchedLog } from '../watched-log.js';
import type { PrefixFinder } from './find-prefix.js';

/** The dependencies of a round. */
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

/** The state of a round. */
export type RoundState = {
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
export function report(state: RoundState, message: string, more: Pick<Alarm, 'evidence'> = {}): void {
  state.isSound = false;
  state.alarms.push({ kind: 'not_intact', origin: state.watched.log.key.name, message, ...more });
}

/** The checkpoints without some. */
export function dropOdd(all: readonly SeenCheckpoint[], odd: ReadonlySet<SeenCheckpoint>): SeenCheckpoint[] {
  return all.filter((one) => !odd.has(one));
}
