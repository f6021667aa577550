/** One round of an audit: what a log and others show now, compared with each other, with its entries and with the past. */
import { equalBytes } from '../../../proof/bytes/primitives.js';
import { type AuditedTree, EMPTY_TREE } from '../../../proof/log/audit.js';
import type { Alarm } from '../alarm/alarm.js';
import { splitView } from '../alarm/alarm.js';
import { isSameTree, type SeenCheckpoint } from '../checkpoint/seen-checkpoint.js';
import { keepNotes, type LogMemory } from '../state/log-memory.js';
import type { WatchedLog } from '../watched-log.js';
import { compareLarger, compareOlder } from './compare-sizes.js';
import { createPrefixFinder } from './find-prefix.js';
import { readLog } from './read-log.js';
import { dropOdd, type RoundDeps, type RoundState, report } from './round-state.js';
import { readSources, type Shown } from './shown.js';

/** The result of a round. `confirmed` counts the other checkpoints that agree with the log's. */
export type Round = {
  /** The checkpoint that the log shows now, if any. */
  readonly main: SeenCheckpoint | undefined;
  /** Other checkpoints of the same tree, which may have other cosignatures. */
  readonly agreeing: readonly SeenCheckpoint[];
  readonly read: number;
  readonly confirmed: number;
  readonly alarms: readonly Alarm[];
  /** The comparisons that could not be made, with reasons. */
  readonly troubles: readonly string[];
  /** The memory after the round; the one before it if the log is not intact. */
  readonly memory: LogMemory;
};

/** Runs a round. Throws SourceError if the log itself cannot be read. */
export async function auditRound(deps: RoundDeps, watched: WatchedLog, memory: LogMemory): Promise<Round> {
  const findPrefix = createPrefixFinder(deps.net, [watched.main, ...watched.mirrors]);
  const state: RoundState = { deps, watched, memory, findPrefix, alarms: [], troubles: [], isSound: true };
  const shown = await readSources(deps.net, watched);
  const { main, unreachable } = shown;
  state.troubles.push(...shown.troubles);
  for (const message of shown.problems) report(state, message);
  const others = reportSplits(state, shown);
  if (unreachable !== undefined && state.alarms.length === 0) throw unreachable;
  const stopped = { main, agreeing: [], read: 0, confirmed: 0, memory };
  if (!state.isSound || unreachable !== undefined) return conclude(state, stopped);
  const isBehind = await compareLarger(state, main, [...ownOf(memory), ...others]);
  if (!state.isSound || isBehind || main === undefined) return conclude(state, stopped);
  const start = startOf(memory, main);
  const audit = await readLog(state, main, start, others);
  if (audit === undefined || !state.isSound) return conclude(state, stopped);
  reportMissed(state, main.size);
  const agreed = await compareOlder(
    state,
    main,
    others.filter((other) => other.size < start.size),
  );
  const compared = audit.confirmed.filter((one) => one !== main && !memory.notes.includes(one));
  return conclude(state, {
    main,
    agreeing: others.filter((other) => isSameTree(other, main)),
    read: audit.tree.size - start.size,
    confirmed: compared.length + agreed.length,
    memory: remember(state, main, audit.tree, [...compared, ...agreed]),
  });
}

function conclude(
  { alarms, troubles, isSound, memory: before }: RoundState,
  rest: Omit<Round, 'alarms' | 'troubles'>,
): Round {
  return { ...rest, memory: isSound ? rest.memory : forget(before), alarms, troubles };
}

/** The log may show fewer entries than were read: their checkpoint was not verified yet. */
function startOf({ read, tip }: LogMemory, main: SeenCheckpoint): AuditedTree {
  return read !== undefined && read.size <= main.size ? read : (tip?.tree ?? EMPTY_TREE);
}

/** Entries that led to an alarm are read again. */
function forget({ tip, notes }: LogMemory): LogMemory {
  return { notes, ...(tip && { tip }) };
}

function ownOf({ tip, notes }: LogMemory): SeenCheckpoint[] {
  return [...(tip ? [tip.checkpoint] : []), ...notes];
}

/** Reports different roots of one size; returns the other checkpoints without those that contradict what is known. */
function reportSplits(state: RoundState, { main, others }: Shown): SeenCheckpoint[] {
  const known = new Map<number, SeenCheckpoint>();
  const odd = new Set<SeenCheckpoint>();
  for (const one of [...ownOf(state.memory), ...(main ? [main] : []), ...others]) {
    const same = known.get(one.size) ?? one;
    known.set(one.size, same);
    if (equalBytes(same.rootHash, one.rootHash)) continue;
    odd.add(one);
    state.alarms.push(splitView(same, one, { odd: one }));
    if (one === main) state.isSound = false;
  }
  return dropOdd(others, odd);
}

/** Statements that an earlier audit has passed by are not looked for. */
function reportMissed({ watched: { expected }, troubles }: RoundState, size: number): void {
  const missed = [...expected.keys()].filter((index) => index < size).length;
  if (missed === 0) return;
  troubles.push(
    `${missed} of the statements are of entries that an earlier audit has read: audit without --state`,
  );
}

/** Returns the memory after a round. A checkpoint's age counts from when its tree was first seen. */
function remember(
  { deps, memory }: RoundState,
  main: SeenCheckpoint,
  tree: AuditedTree,
  notes: readonly SeenCheckpoint[],
): LogMemory {
  const { tip, read } = memory;
  const kept = keepNotes(memory.notes, notes);
  const isKnown = tip?.tree.size === main.size && kept.length === memory.notes.length && read === undefined;
  if (isKnown) return memory;
  const seenAt = tip && isSameTree(tip.checkpoint, main) ? tip.seenAt : undefined;
  const checkpoint = { ...main, from: 'the last audit' };
  return { tip: { checkpoint, tree, seenAt: seenAt ?? deps.now() }, notes: kept };
}
