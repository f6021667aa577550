import type { Config } from '../../../config/config.js';
import { createSequencers, type Sequencers } from '../../attestations/sequence/sequencers.js';
import type { Logger } from '../../core/logger.js';
import { createOutageLogs } from '../../core/outage-log.js';
import type { Pool } from '../../database/connect.js';
import type { StandbyWatch } from '../../database/standby-watch.js';
import { sealJob } from '../../jobs/job.js';
import type { JobSender } from '../../jobs/job-sender.js';
import type { LogCache } from '../../log/log-cache.js';
import type { LogGuard } from '../../log/log-guard.js';

/** Bounds of the batched write. Two calls in flight saturate the database; 3 and 4 gained nothing. */
const LIMITS = {
  maxRows: 500,
  maxBytes: 1024 * 1024,
  maxInFlight: 2,
  enoughRows: 64,
  maxQueuedRows: 5_000,
};
/** Connections of the pool that the sequencers of so many logs write by. */
export const writeConnections = (logs: number) => LIMITS.maxInFlight * logs;
/** With the last call it is 10 s. */
const PATIENCE_MS = 9_500;

const NO_PARTITION =
  'no submission is accepted: the log has no partition for its next leaves. A worker adds it within half a minute: ' +
  'start one, or see in its log why it cannot';

type Process = {
  config: Pick<Config, 'idempotencyRetentionMs'>;
  log: Pick<Logger, 'warn' | 'info'>;
  standby: Pick<StandbyWatch, 'guard'>;
};
type Deps = { pool: Pool; logCache: LogCache; guard: LogGuard; jobs: JobSender };

/** Opens the sequencers of a process over its write pool. */
export function openSequencers(
  { config, log, standby }: Process,
  { pool, logCache, guard, jobs }: Deps,
): Sequencers {
  const retentionMs = config.idempotencyRetentionMs;
  const outageLogs = createOutageLogs(log, () => performance.now());
  const shared = {
    pool,
    guard,
    guardCommit: standby.guard,
    limits: LIMITS,
    retentionMs,
    patienceMs: PATIENCE_MS,
    onLackingPartition: (logId: number) =>
      outageLogs.for(String(logId)).failed({ log_id: logId }, NO_PARTITION),
  };
  return createSequencers(logCache.activeLog, shared, (logId) => jobs.send(sealJob(logId)));
}
