import { setMaxListeners } from 'node:events';
import { tmpdir } from 'node:os';
import type { ArchiveConfig } from '../../config/config.js';
import type { Storage } from '../../config/object-storage.js';
import { parseCheckpoint } from '../../proof/log/checkpoint.js';
import { environmentNumber } from '../../protocol/environment.js';
import type { Pool } from '../database/connect.js';
import { findDsseKeys } from '../embedded/secrets.js';
import { ArchiveError } from '../exports/archive/archive-error.js';
import { type Dropped, dropArchived } from '../exports/archive/drop-log.js';
import { findLog } from '../exports/archive/find-log.js';
import { type Imported, importLog } from '../exports/archive/import-log.js';
import { type ArchiveDeps, type Archived, archiveLog } from '../exports/archive/write-archive.js';
import { openOperatorStore } from '../exports/destinations/operator-store.js';
import { createSpoolBudget } from '../exports/ship/spool-budget.js';
import { openLogCache } from '../log/log-cache.js';
import { findNewestPublishedBatch } from '../log/store/batches.js';
import { logName } from '../log/store/logs.js';
import { openRegister } from '../witnessing/register/open-register.js';
import { createManifestSigner } from './worker/manifest-signing.js';

/** Callbacks of progress: the number of leaves of the whole, and numbers of leaves that are done. */
type Progress = Pick<ArchiveDeps, 'onStart' | 'onLeaves'>;

/** What operators do with the archive of a log in an open store. */
export type LogArchiver = {
  /** Writes settled batches of a log: those from the one with leaf `first` on, which end at `end` or before. */
  archive(
    origin: string,
    range: { first?: number | undefined; end?: number | undefined },
    progress: Progress,
  ): Promise<Archived>;
  /** Puts an archived log that has ended into the database. */
  import(origin: string, progress: Progress): Promise<Imported>;
  /** Removes submissions below `end` from the tables, which the archive has. */
  drop(
    origin: string,
    how: { end: number | undefined; hasEntries: boolean },
    progress: Progress,
  ): Promise<Dropped>;
};

/** One object at a time is in temporary files: this bounds it. */
const SPOOL_BYTES = 64 * 1024 ** 3;

/** Implements `attest log archive`, `import` and `drop` over an open database. */
export async function openLogArchiver<T>(
  pool: Pool,
  config: ArchiveConfig,
  place: Storage,
  use: (archiver: LogArchiver) => Promise<T>,
): Promise<T> {
  const logCache = await openLogCache(pool);
  const storage = await openOperatorStore(place);
  const register = await openRegister(config.checkpointRegister);
  const signer = await openSigner(pool, logCache, config);
  const { signal } = new AbortController();
  // Each piece that is read has a listener or two.
  setMaxListeners(0, signal);
  const shared = { pool, logCache, storage, signal };
  const writing = {
    ...shared,
    signStatement: signer.signStatement,
    temporaryDirectory: tmpdir(),
    spoolBudget: createSpoolBudget(SPOOL_BYTES),
  };
  try {
    return await use({
      archive: (origin, range, progress) => archiveLog({ ...writing, ...progress }, origin, range),
      import: (origin, progress) =>
        importLog({ ...shared, register, ...progress }, { origin, environment: environmentOf(origin) }),
      drop: async (origin, { end, hasEntries }, progress) => {
        if (hasEntries) await assertStored(pool, config.logStorage, { origin, end, signal });
        return dropArchived({ ...shared, ...progress }, origin, end);
      },
    });
  } finally {
    await signer.close();
    await storage.close();
  }
}

/** The environment that an origin begins with, a proto number. */
function environmentOf(origin: string): number {
  return environmentNumber(origin.startsWith('test') ? 'test' : 'live');
}

/** Throws ArchiveError unless LOG_STORAGE has the entries of the leaves below a size: the tables will have them no more. */
async function assertStored(
  pool: Pool,
  place: Storage | undefined,
  { origin, end, signal }: { origin: string; end: number | undefined; signal: AbortSignal },
): Promise<void> {
  const log = await findLog(pool, origin);
  const wanted = end ?? (await findNewestPublishedBatch(pool, log.id))?.treeSize ?? 0;
  const instead = 'or say --without-entries: auditors find the entries nowhere then';
  if (place === undefined)
    throw new ArchiveError(
      `the entries of ${origin} are published from the rows: set LOG_STORAGE, ${instead}`,
    );
  const { store, nameOf, close } = await openOperatorStore(place);
  try {
    const found = await store.readText(nameOf(`log/${logName(log)}/checkpoint`), signal);
    const { origin: stored, size } = found === undefined ? { origin, size: 0 } : parseCheckpoint(found.text);
    if (stored !== origin || size < wanted)
      throw new ArchiveError(
        `LOG_STORAGE has ${size} of the leaves of ${origin}: wait until it has ${wanted}, ${instead}`,
      );
  } finally {
    await close();
  }
}

/** Opens the signer of manifests: with the keys of DSSE_KEY_FILE, or those of the data directory. */
async function openSigner(
  pool: Pool,
  logCache: Parameters<typeof createManifestSigner>[1],
  { dsse, databaseUrl, dataDir }: ArchiveConfig,
): Promise<Pick<ReturnType<typeof createManifestSigner>, 'signStatement' | 'close'>> {
  const keys = dsse ?? (databaseUrl === undefined ? await findDsseKeys(dataDir) : undefined);
  if (keys !== undefined) return createManifestSigner(pool, logCache, keys);
  return {
    signStatement: () =>
      Promise.reject(new ArchiveError('the manifests of an archive are signed: set DSSE_KEY_FILE')),
    close: async () => {},
  };
}
