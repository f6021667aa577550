import type { Lookup } from '../../core/lookup.js';
import type { LogOwner } from '../../log/log-cache.js';
import type { Log } from '../../log/store/logs.js';
import { activeSpan, inSharedSpan, type SpanReference } from '../../telemetry/spans.js';
import { createSequencer, type Sequencer } from './sequence.js';
import type { SequencerDeps } from './write-rows.js';

/** The sequencers of the active logs, created on first use. */
export type Sequencers = {
  of: Lookup<LogOwner, Sequencer>;
  /** The number of queued submissions. */
  queued(): number;
  /** Resolves once every queued submission has its outcome. */
  close(): Promise<void>;
};

/** Minimum interval between the wakes of a log; a pending one is enough. */
const WAKE_MS = 100;

/** Creates the sequencers of a process. `wake` is called after calls that stored rows of a log. */
export function createSequencers(
  activeLog: Lookup<LogOwner, Pick<Log, 'id'>>,
  shared: Omit<SequencerDeps, 'logId' | 'clock' | 'wake'>,
  wake: (logId: number) => void,
): Sequencers {
  const made = new Map<number, Sequencer>();
  const sequencerOf = ({ id: logId }: Pick<Log, 'id'>): Sequencer => {
    const known = made.get(logId);
    if (known !== undefined) return known;
    const clock = () => performance.now();
    const sequencer = createSequencer({ ...shared, logId, clock, wake: throttle(() => wake(logId)) });
    made.set(logId, sequencer);
    return sequencer;
  };
  return {
    of: {
      peek: (owner) => {
        const log = activeLog.peek(owner);
        return log && sequencerOf(log);
      },
      get: async (owner) => sequencerOf(await activeLog.get(owner)),
    },
    queued: () => [...made.values()].reduce((sum, sequencer) => sum + sequencer.queued(), 0),
    close: async () => {
      await Promise.all([...made.values()].map((sequencer) => sequencer.close()));
    },
  };
}

/**
 * Returns a function each call of which is followed by a run, in a timer turn and once in an interval at most. Timers do
 * not keep the process alive. The run is in the trace of the first call that is recorded.
 */
function throttle(run: () => void): () => void {
  let waiting = false;
  let span: SpanReference | undefined;
  let lastMs = Number.NEGATIVE_INFINITY;
  const runNow = () => {
    const spans = span === undefined ? [] : [span];
    waiting = false;
    span = undefined;
    lastMs = performance.now();
    void inSharedSpan('wake', spans, {}, async () => run());
  };
  return () => {
    span ??= activeSpan();
    if (waiting) return;
    waiting = true;
    setTimeout(runNow, Math.max(0, lastMs + WAKE_MS - performance.now())).unref();
  };
}
