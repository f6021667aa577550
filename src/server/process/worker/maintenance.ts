import type { Config } from '../../../config/config.js';
import { indexArtifacts } from '../../attestations/artifacts/index-artifacts.js';
import { endReplacedLogs, retireDsseKeys } from '../../attestations/signing/retirement.js';
import type { Logger } from '../../core/logger.js';
import { dropFormerIndexes } from '../../database/former-indexes.js';
import type { StandbyWatch } from '../../database/standby-watch.js';
import { endStoppedSessions } from '../../database/stopped-sessions.js';
import { addSparePartitions } from '../../log/store/partitions.js';
import { fillTileNodes } from '../../log/store/tiles.js';
import type { Pipeline } from '../../pipeline/pipeline.js';
import type { createReconcilers } from '../../pipeline/reconciler.js';
import { recordWorker } from '../../pipeline/workers.js';
import type { LogStorer } from '../../public/storage/log-storer.js';
import { createRecheck } from '../../witnessing/recheck.js';
import { prune } from './prune.js';

const RECONCILE_MS = 1_000;
const PRUNE_MS = 60_000;
const RETIRE_MS = 10_000;
const TUF_MS = 60_000;
const STORE_MS = 500;
const STORE_ROOTS_MS = 10_000;
const INDEX_MS = 1_000;
/** How long processes of the version before may run after the migration. */
const GRACE_MS = 24 * 3_600_000;
const SIGN_OF_LIFE_MS = 5_000;
/** A partition ahead is enough for 45 minutes at the highest rate measured. */
const PARTITIONS_MS = 30_000;
const RECHECK_MS = 10 * 60_000;
/** Hashing 50 tiles takes 15 ms, in which this process does nothing else. */
const TILES_FILLED = 50;

/** Repeats named work at an interval, until the worker stops. */
export type Repeat = (ms: number, work: string, run: () => Promise<void>) => Promise<void>;

type Maintenance = {
  workerId: string;
  lookAt: ReturnType<typeof createReconcilers>;
  repeat: Repeat;
  renewTuf: () => Promise<void>;
  storer: LogStorer | undefined;
  stopping: AbortSignal;
};

/** Starts what is done at intervals. While commits are not confirmed, only looking and the signs of life go on. */
export function startMaintenance(
  pipeline: Pipeline,
  { config, log, standby }: { config: Config; log: Logger; standby: StandbyWatch },
  { workerId, lookAt, repeat: repeatAlways, renewTuf, storer, stopping }: Maintenance,
): Promise<void>[] {
  const { pool, localPool } = pipeline;
  const repeat: Repeat = (ms, work, run) =>
    repeatAlways(ms, work, async () => {
      standby.assertAnswers();
      await run();
    });
  const [lookAtLogs, lookAtEvents] = lookAt;
  return [
    repeatAlways(RECONCILE_MS, 'looking for due jobs of logs', lookAtLogs),
    repeatAlways(RECONCILE_MS, 'looking for due events, deliveries and exports', lookAtEvents),
    repeatAlways(SIGN_OF_LIFE_MS, 'recording that this worker runs', () => recordWorker(localPool, workerId)),
    repeatAlways(RECONCILE_MS, 'ending sessions of stopped processes', async () => {
      for (const name of await endStoppedSessions(localPool))
        log.warn({ name }, 'a session is ended: its process stopped within a statement');
    }),
    repeat(RECHECK_MS, 'checking evidence again', createRecheck(pipeline)),
    repeat(INDEX_MS, 'indexing artifacts', () => indexArtifacts({ pool, log }, stopping)),
    repeat(RETIRE_MS, 'ending replaced logs and keys', async () => {
      for (const origin of await endReplacedLogs(pool)) log.info({ origin }, 'a replaced log ends');
      for (const id of await retireDsseKeys(pool)) log.info({ id }, 'a replaced DSSE key ends in an hour');
    }),
    repeat(TUF_MS, 'renewing TUF metadata', renewTuf),
    ...(storer === undefined
      ? []
      : [
          repeat(STORE_MS, 'writing the public log to LOG_STORAGE', storer.storeLogs),
          repeat(STORE_ROOTS_MS, 'writing trust roots to LOG_STORAGE', storer.storeRoots),
        ]),
    repeat(PRUNE_MS, 'deleting expired rows', () => prune(pool, config)),
    repeat(PARTITIONS_MS, 'adding partitions of submissions', async () => {
      for (const partition of await addSparePartitions(pool))
        log.debug({ partition }, 'a partition is added');
    }),
    repeat(PRUNE_MS, 'dropping former indexes', async () => {
      for (const index of await dropFormerIndexes(pool, GRACE_MS))
        log.info({ index }, 'a former index is dropped');
    }),
    repeat(PRUNE_MS, 'storing nodes of tiles', async () => {
      while ((await fillTileNodes(pool, TILES_FILLED)) === TILES_FILLED);
    }),
  ];
}
