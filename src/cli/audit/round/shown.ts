/** Reads the checkpoints that a log, its mirrors and its witnesses show now. */
import { fromUtf8 } from '../../../proof/bytes/encoding.js';
import { FormatError } from '../../../proof/bytes/format-error.js';
import type { SourcedNote } from '../checkpoint/audit-checkpoints.js';
import { openSeen, type SeenCheckpoint } from '../checkpoint/seen-checkpoint.js';
import { fetchCheckpoint, type LogSource, type Net, SourceError } from '../source/log-source.js';
import type { WatchedLog } from '../watched-log.js';

/** Verified checkpoints. */
export type Shown = {
  /** The log's own; undefined if it shows none, or no valid one. */
  readonly main: SeenCheckpoint | undefined;
  /** The error of reading the log. */
  readonly unreachable: SourceError | undefined;
  /** The checkpoints of mirrors and witnesses, of bundles and batches. */
  readonly others: readonly SeenCheckpoint[];
  /** The problems of the log's own checkpoint, or of one of a bundle or batch. */
  readonly problems: readonly string[];
  /** Why a mirror or witness could not be compared. */
  readonly troubles: readonly string[];
};

type Found = { seen?: SeenCheckpoint; problem?: string; trouble?: string };

/** Reads all sources: the log last, so that it shows what any other has from it. */
export async function readSources(net: Net, watched: WatchedLog): Promise<Shown> {
  const own = watched.given.filter(({ note }) => originOf(note) === watched.log.key.name);
  const others = await Promise.all([
    ...[...watched.mirrors, ...watched.witnesses].map((source) => readOther(net, source, watched)),
    ...own.map((note) => readGiven(note, watched)),
  ]);
  const main = await readMain(net, watched);
  const all: Found[] = [...others, main];
  return {
    main: main.seen,
    unreachable: main.unreachable,
    others: others.flatMap(({ seen }) => seen ?? []),
    problems: [...all.flatMap(({ problem }) => problem ?? []), ...forgeriesOf(main.seen)],
    troubles: all.flatMap(({ trouble }) => trouble ?? []),
  };
}

async function readMain(net: Net, watched: WatchedLog): Promise<Found & { unreachable?: SourceError }> {
  try {
    const bytes = await fetchCheckpoint(net, watched.main);
    if (bytes === undefined) return {};
    const seen = await openSeen({ note: fromUtf8(bytes), from: watched.main.name }, watched);
    return seen.isSigned ? { seen } : { problem: 'a checkpoint is not signed by its log' };
  } catch (error) {
    if (error instanceof SourceError) return { unreachable: error };
    if (error instanceof FormatError) return { problem: error.message };
    throw error;
  }
}

/** A mirror that fails, or shows an unsigned checkpoint, is no evidence about the log. */
async function readOther(net: Net, source: LogSource, watched: WatchedLog): Promise<Found> {
  try {
    const bytes = await fetchCheckpoint(net, source);
    if (bytes === undefined)
      return { trouble: `${source.name} shows no checkpoint of ${watched.log.key.name}` };
    const note = fromUtf8(bytes);
    if (watched.otherOrigins.includes(originOf(note))) return {};
    return { seen: await openSeen({ note, from: source.name }, watched) };
  } catch (error) {
    if (error instanceof SourceError) return { trouble: `${source.name}: ${error.message}` };
    if (error instanceof FormatError)
      return { trouble: `${source.name} shows no checkpoint of the log: ${error.message}` };
    throw error;
  }
}

async function readGiven(note: SourcedNote, watched: WatchedLog): Promise<Found> {
  try {
    return { seen: await openSeen(note, watched) };
  } catch (error) {
    if (error instanceof FormatError) return { problem: `${note.from}: ${error.message}` };
    throw error;
  }
}

function forgeriesOf(main: SeenCheckpoint | undefined): string[] {
  return (main?.forged ?? []).map((name) => `its checkpoint has a signature of ${name} that is not valid`);
}

function originOf(note: string): string {
  return note.split('\n', 1).join('');
}
