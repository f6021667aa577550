import type { Principal } from '../core/principal.js';
import type { LogCache } from '../logs/log-cache.js';
import { createSequencer, type Sequencer } from '../pipeline/sequence.js';
import type { SequencerDeps } from '../pipeline/write-rows.js';

/** The sequencers of the active logs, created on first use. */
export type Sequencers = {
  of(environment: Principal['environment']): Promise<Sequencer>;
  /** The number of queued submissions. */
  queued(): number;
  /** Resolves once every queued submission has its outcome. */
  close(): Promise<void>;
};

/** @param open creates the sequencer of a log */
export function createSequencers(logCache: LogCache, open: (logId: number) => SequencerDeps): Sequencers {
  const sequencers = new Map<number, Sequencer>();
  return {
    of: async (environment) => {
      const { id } = await logCache.getActiveLog(environment);
      const known = sequencers.get(id);
      if (known !== undefined) return known;
      const made = createSequencer(open(id));
      sequencers.set(id, made);
      return made;
    },
    queued: () => [...sequencers.values()].reduce((sum, sequencer) => sum + sequencer.queued(), 0),
    close: async () => {
      await Promise.all([...sequencers.values()].map((sequencer) => sequencer.close()));
    },
  };
}
