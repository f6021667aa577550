/** Audits logs round by round, and remembers what it has seen of them. */
import type { AuditedTree } from '../../proof/log/audit.js';
import type { Alarm } from './alarm/alarm.js';
import { isSameTree, type SeenCheckpoint } from './checkpoint/seen-checkpoint.js';
import { auditRound, type Round } from './round/audit-round.js';
import { checkFreshness, freshAt } from './round/freshness.js';
import type { RoundDeps } from './round/round-state.js';
import { SourceError } from './source/log-source.js';
import { recall, type StateFile } from './state/audit-state.js';
import { keepNotes, type LogMemory } from './state/log-memory.js';
import type { Demands, WatchedLog } from './watched-log.js';

/** The outcome of a round: a {@link Round}, unless the log could not be read. */
export type Outcome = {
  readonly watched: WatchedLog;
  readonly round: Round | undefined;
  /** Why the log could not be read. */
  readonly unreachable: SourceError | undefined;
  /** The alarms of the round, and those about age and witnesses. */
  readonly alarms: readonly Alarm[];
  /** Number of entries that are verified. */
  readonly verifiedSize: number;
  readonly freshAt: Date;
};

/** Runs rounds. */
export type Monitor = { audit(watched: WatchedLog): Promise<Outcome> };

type MonitorDeps = Omit<RoundDeps, 'startProgress' | 'onRead' | 'isOverdue'> & {
  readonly state: StateFile;
  readonly demands: Demands;
  /** How long races and caches may explain what two places show; 0 to wait for nothing. */
  readonly graceMs: number;
  readonly startProgress: (origin: string, entries: number) => (entries: number) => void;
};

/** How often the place in a long audit is stored. */
const SAVE_EVERY_MS = 5_000;

/** Longer than any wait between two rounds. */
const FORGET_AFTER_MS = 2 * 3_600_000;

/** Creates a monitor. Its `audit` throws UsageError if the state is damaged or cannot be written. */
export function createMonitor(deps: MonitorDeps): Monitor {
  const memories = new Map<string, LogMemory>();
  const isOverdue = createOverdueCheck(deps);
  const startedAt = deps.now();
  return {
    audit: async (watched) => {
      const { name } = watched.log.key;
      const memory = memories.get(name) ?? (await recall(deps.state.state, watched));
      const ended = await runRound(deps, watched, memory, isOverdue);
      memories.set(name, ended.memory);
      if (isWorthSaving(memory, ended)) await deps.state.save(name, ended.memory);
      const { tip } = ended.memory;
      const newest = {
        origin: name,
        checkpoints: newestOf(ended.round, ended.memory),
        since: tip?.seenAt ?? startedAt,
        isReachable: ended.unreachable === undefined,
        closedAt: watched.log.validTo,
      };
      const now = deps.now();
      return {
        ...ended,
        watched,
        alarms: [...(ended.round?.alarms ?? []), ...checkFreshness(newest, deps.demands, { now, isOverdue })],
        verifiedSize: tip?.checkpoint.size ?? 0,
        freshAt: freshAt(newest, now),
      };
    },
  };
}

type Ended = Pick<Outcome, 'round' | 'unreachable'> & { readonly memory: LogMemory };

async function runRound(
  deps: MonitorDeps,
  watched: WatchedLog,
  memory: LogMemory,
  isOverdue: (what: string) => boolean,
): Promise<Ended> {
  const { name } = watched.log.key;
  let reached = memory;
  let savedAt = deps.now().getTime();
  const onRead = async (read: AuditedTree, ahead: SeenCheckpoint) => {
    reached = { ...memory, read, notes: keepNotes(memory.notes, [ahead]) };
    if (deps.now().getTime() - savedAt < SAVE_EVERY_MS) return;
    savedAt = deps.now().getTime();
    await deps.state.save(name, reached);
  };
  const startProgress = (entries: number) => deps.startProgress(name, entries);
  try {
    const round = await auditRound({ ...deps, isOverdue, onRead, startProgress }, watched, memory);
    return { round, unreachable: undefined, memory: round.memory };
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    return { round: undefined, unreachable: error, memory: reached };
  }
}

/** An alarm about the log leaves the file as it is, unless it holds a place in entries that led to the alarm. */
function isWorthSaving(before: LogMemory, { round, memory }: Ended): boolean {
  if (memory === before) return false;
  return round === undefined || round.memory.tip !== before.tip || before.read !== undefined;
}

/** The newest verified checkpoint, with others of the same tree that were seen in this round. */
function newestOf(round: Round | undefined, { tip }: LogMemory): SeenCheckpoint[] {
  if (tip === undefined) return [];
  const others = round === undefined ? [] : [...(round.main ? [round.main] : []), ...round.agreeing];
  return [tip.checkpoint, ...others.filter((other) => isSameTree(other, tip.checkpoint))];
}

/** Creates a check of whether a trouble has been seen for `graceMs`, without a gap of {@link FORGET_AFTER_MS}. */
function createOverdueCheck({ graceMs, now }: MonitorDeps): (what: string) => boolean {
  const seen = new Map<string, { first: number; last: number }>();
  return (what) => {
    const at = now().getTime();
    for (const [other, { last }] of seen) if (at - last > FORGET_AFTER_MS) seen.delete(other);
    const first = seen.get(what)?.first ?? at;
    seen.set(what, { first, last: at });
    return at - first >= graceMs;
  };
}
