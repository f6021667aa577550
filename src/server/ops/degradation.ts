import type { Pool } from '../database/connect.js';
import { findDelays } from '../pipeline/workers.js';

/** Six heartbeat intervals of a worker. */
const SILENT_MS = 30_000;
/** A worker settles a batch within a second of its deadline. */
const LATE_MS = 60_000;
const LOOK_MS = 1_000;

/**
 * Creates the check for degraded service: why nothing is stored now, or submissions are not witnessed in time; undefined if
 * neither is so. It queries the tables once a second at most.
 */
export function createDegradationCheck(
  pool: Pool,
  monotonicMs: () => number,
  notStored: () => string | undefined,
): () => Promise<string | undefined> {
  let lookedMs = Number.NEGATIVE_INFINITY;
  let latest: Promise<string | undefined> = Promise.resolve(undefined);
  return async () => {
    const reason = notStored();
    if (reason !== undefined) return reason;
    if (monotonicMs() - lookedMs < LOOK_MS) return latest;
    lookedMs = monotonicMs();
    latest = look(pool);
    return latest;
  };
}

async function look(pool: Pool): Promise<string | undefined> {
  const { isWorking, isLate } = await findDelays(pool, { silentMs: SILENT_MS, lateMs: LATE_MS });
  if (!isWorking) return 'no worker runs: what is submitted is kept, and witnessed once one does';
  return isLate ? 'a batch is neither witnessed nor given up long after its deadline' : undefined;
}
