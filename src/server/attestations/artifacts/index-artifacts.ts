/**
 * Consumes: leaves that the index of artifacts does not cover, 1,024 or more of a log.
 * Commit point: the transaction that stores a run and its range, or a part of a merge.
 * Emits: nothing; lists by artifact read runs, and leaves one by one where no run covers them yet.
 * A crash leaves: the index as it was before that transaction. Concurrent runs take turns, log by log.
 */
import type { Logger } from '../../core/logger.js';
import type { Pool } from '../../database/connect.js';
import { addArtifactRun, mergeArtifactRuns, readArtifactIndex } from './artifact-runs.js';

/** A backlog of this size is an upgrade's or an outage's: its progress is logged. */
const LARGE_BACKLOG = 1_000_000;
const PROGRESS_MS = 10_000;
/** Fewer unindexed leaves are left to the workers, which index every second. */
const MIN_TAIL = 4_096;
/** The most runs that an API process adds to a log at a time. */
const MAX_TAIL_RUNS = 32;

/** Indexes the artifacts of all logs, and merges runs, until nothing is left or `stopping` aborts. */
export async function indexArtifacts(
  { pool, log }: { pool: Pool; log: Logger },
  stopping: AbortSignal,
): Promise<void> {
  let reportMs = performance.now();
  for (const state of await readArtifactIndex(pool)) {
    while (!stopping.aborted && (await indexNext(pool, state.logId))) {
      if (state.size - state.indexed < LARGE_BACKLOG || performance.now() - reportMs < PROGRESS_MS) continue;
      reportMs = performance.now();
      const now = (await readArtifactIndex(pool)).find(({ logId }) => logId === state.logId);
      log.info({ logId: state.logId, indexed: now?.indexed, size: now?.size }, 'indexing artifacts');
    }
  }
}

/** Merges come first, so that there are never many runs. @returns whether there was something to do */
async function indexNext(pool: Pool, logId: number): Promise<boolean> {
  return (await mergeArtifactRuns(pool, logId)) || (await addArtifactRun(pool, logId));
}

/**
 * Indexes the newest artifacts while no worker does, so that look-ups never read a long tail leaf by leaf. An API process
 * calls this every few seconds.
 */
export async function indexTails(pool: Pool): Promise<void> {
  for (const state of await readArtifactIndex(pool)) {
    if (state.size - state.indexed < MIN_TAIL) continue;
    for (let runs = 0; runs < MAX_TAIL_RUNS && (await indexNext(pool, state.logId)); runs++);
  }
}
