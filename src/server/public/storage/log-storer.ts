/** Keeps LOG_STORAGE up with the tables: one worker at a time for each log, which holds the log's advisory lock. */
import { FormatError } from '../../../proof/bytes/format-error.js';
import type { Logger } from '../../core/logger.js';
import type { Pool } from '../../database/connect.js';
import { DestinationError } from '../../exports/destinations/destination.js';
import { SigningError } from '../../keys/signing-error.js';
import { type Log, LogLock } from '../../log/store/logs.js';
import { findNewestCosigned } from '../log-reader.js';
import { StorageConflict, type StorageDeps } from './log-storage.js';
import { storeLog } from './store-log.js';
import { createRootsStorer, type RootsSources } from './store-roots.js';

const SIGN_OF_LIFE_MS = 1_000;

/** Writes public files; both reject if the database is away. */
export type LogStorer = {
  /** Writes what is published and not stored. */
  storeLogs(): Promise<void>;
  /** Writes trust roots, TUF metadata and the verify page, if they have changed. */
  storeRoots(): Promise<void>;
  /** The tree size in the storage, as this worker last saw it, by the log's origin. */
  sizes(): ReadonlyMap<string, number>;
};

/** Creates a storer. */
export function createLogStorer(deps: StorageDeps, sources: RootsSources): LogStorer {
  /** By origin the batch and cosignatures that the storage has: their note, empty before the first batch. */
  const notes = new Map<string, string>();
  const sizes = new Map<string, number>();
  const { storeTrustRoots, storeAll } = createRootsStorer(deps, sources);
  const toleratingRoots = tolerating(deps.log, 'trust roots, TUF metadata and the verify page');
  /** By origin: a log whose storage has another history keeps no other from being written. */
  const toleratingLogs = new Map<string, ReturnType<typeof tolerating>>();
  const store = async (log: Log) => {
    const newest = await findNewestCosigned(deps.pool, log.id);
    const { note, treeSize } = newest ?? { note: '', treeSize: 0 };
    if (notes.get(log.origin) === note) return;
    await withLock(deps.pool, log, async () => {
      const size = await storeLog({ ...deps, storeTrustRoots }, log);
      sizes.set(log.origin, size);
      if (size === treeSize) notes.set(log.origin, note);
    });
  };
  return {
    storeLogs: async () => {
      await deps.logCache.refresh();
      for (const log of deps.logCache.allLogs()) {
        const { origin } = log;
        if (!sizes.has(origin)) sizes.set(origin, 0);
        const tolerate = toleratingLogs.get(origin) ?? tolerating(deps.log, `the log ${origin}`);
        toleratingLogs.set(origin, tolerate);
        await tolerate(() => store(log));
      }
    },
    storeRoots: () => toleratingRoots(storeAll),
    sizes: () => sizes,
  };
}

/** Runs what writes `what`. A storage that fails is logged once, until it works again. */
function tolerating(log: Logger, what: string): (work: () => Promise<void>) => Promise<void> {
  let failing: string | undefined;
  return async (work) => {
    try {
      await work();
    } catch (error) {
      if (!isOfStorage(error)) throw error;
      if (failing !== error.message)
        log.error({ reason: error.message }, `LOG_STORAGE is not written: ${what}`);
      failing = error.message;
      return;
    }
    if (failing !== undefined) log.info(`LOG_STORAGE is written again: ${what}`);
    failing = undefined;
  };
}

function isOfStorage(error: unknown): error is Error {
  return (
    error instanceof StorageConflict ||
    error instanceof DestinationError ||
    error instanceof FormatError ||
    error instanceof SigningError
  );
}

/**
 * Runs work while this worker holds the log's lock; without it if another worker does. The transaction of a worker that has
 * stopped ends after it was idle for a few seconds.
 */
async function withLock(pool: Pool, { id }: Log, work: () => Promise<void>): Promise<void> {
  await pool.begin(async (tx) => {
    const [lock] = await tx<{ held: boolean }[]>`
      SELECT pg_try_advisory_xact_lock(${LogLock.STORE}, ${id}) AS held`;
    if (!lock?.held) return;
    const timer = setInterval(() => void tx`SELECT 1`.catch(() => {}), SIGN_OF_LIFE_MS);
    try {
      await work();
    } finally {
      clearInterval(timer);
    }
  });
}
