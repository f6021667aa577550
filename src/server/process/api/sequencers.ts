import type { Config } from '../../../config/config.js';
import type { Lookup } from '../../core/lookup.js';
import type { Principal } from '../../core/principal.js';
import type { LogCache } from '../../logs/log-cache.js';
import type { LogGuard } from '../../logs/log-guard.js';
import { sealJob } from '../../pipeline/jobs/job.js';
import type { JobSender } from '../../pipeline/jobs/job-sender.js';
import { createSequencer, type Sequencer } from '../../pipeline/sequence.js';
import type { SequencerDeps } from '../../pipeline/write-rows.js';
import type { Pool } from '../../store/database/connect.js';
import type { Log } from '../../store/log/logs.js';

/** The sequencers of the active logs, created on first use. */
export type Sequencers = {
  of: Lookup<Principal['environment'], Sequencer>;
  /** The number of queued submissions. */
  queued(): number;
  /** Resolves once every queued submission has its outcome. */
  close(): Promise<void>;
};

/** Bounds of the batched write. Two calls in flight saturate the database; 3 and 4 gained nothing. */
const LIMITS = {
  maxRows: 500,
  maxBytes: 1024 * 1024,
  maxInFlight: 2,
  enoughRows: 64,
  maxQueuedRows: 5_000,
};
/** Connections of the pool that sequencers write by: those of both logs. */
export const WRITE_CONNECTIONS = LIMITS.maxInFlight * 2;
const PATIENCE_MS = 5_000;
/** Minimum interval between seal jobs; a pending one is enough. */
const WAKE_MS = 100;

type Deps = {
  config: Pick<Config, 'idempotencyRetentionMs'>;
  pool: Pool;
  logCache: LogCache;
  guard: LogGuard;
  jobs: JobSender;
};

/** The sequencers of a process over its write pool. */
export function createSequencers(deps: Deps): Sequencers {
  const sequencers = new Map<number, Sequencer>();
  const sequencerOf = ({ id }: Log): Sequencer => {
    const known = sequencers.get(id);
    if (known !== undefined) return known;
    const made = createSequencer(depsOf(deps, id));
    sequencers.set(id, made);
    return made;
  };
  const { activeLog } = deps.logCache;
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

function depsOf({ config, pool, guard, jobs }: Deps, logId: number): SequencerDeps {
  return {
    pool,
    logId,
    limits: LIMITS,
    retentionMs: config.idempotencyRetentionMs,
    patienceMs: PATIENCE_MS,
    clock: () => performance.now(),
    wake: throttle(WAKE_MS, () => jobs.send(sealJob(logId))),
    beforeWrite: () => guard.assertWritable(pool, logId),
    recordStored: (leaf) => guard.recordAcknowledged(logId, leaf),
  };
}

/**
 * Returns a function that calls `run` at most once per interval, on its next timer turn if the interval has passed.
 * Every call is followed by a run. Timers do not keep the process alive.
 */
function throttle(intervalMs: number, run: () => void): () => void {
  let waiting = false;
  let lastMs = Number.NEGATIVE_INFINITY;
  return () => {
    if (waiting) return;
    const inMs = lastMs + intervalMs - performance.now();
    waiting = true;
    setTimeout(
      () => {
        waiting = false;
        lastMs = performance.now();
        run();
      },
      Math.max(0, inMs),
    ).unref();
  };
}
