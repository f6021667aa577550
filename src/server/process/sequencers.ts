import type { Lookup } from '../core/lookup.js';
import type { Principal } from '../core/principal.js';
import type { LogCache } from '../logs/log-cache.js';
import { createSequencer, type Sequencer } from '../pipeline/sequence.js';
import type { SequencerDeps } from '../pipeline/write-rows.js';
import type { Log } from '../store/log/logs.js';

/** The sequencers of the active logs, created on first use. */
export type Sequencers = {
  of: Lookup<Principal['environment'], Sequencer>;
  /** The number of queued submissions. */
  queued(): number;
  /** Resolves once every queued submission has its outcome. */
  close(): Promise<void>;
};

/** @param open creates the sequencer of a log */
export function createSequencers(logCache: LogCache, open: (logId: number) => SequencerDeps): Sequencers {
  const sequencers = new Map<number, Sequencer>();
  const sequencerOf = ({ id }: Log): Sequencer => {
    const known = sequencers.get(id);
    if (known !== undefined) return known;
    const made = createSequencer(open(id));
    sequencers.set(id, made);
    return made;
  };
  const { activeLog } = logCache;
  return {
    of: {
      known: (environment) => {
        const log = activeLog.known(environment);
        return log && sequencerOf(log);
      },
      find: async (environment) => sequencerOf(await activeLog.find(environment)),
    },
    queued: () => [...sequencers.values()].reduce((sum, sequencer) => sum + sequencer.queued(), 0),
    close: async () => {
      await Promise.all([...sequencers.values()].map((sequencer) => sequencer.close()));
    },
  };
}
