/** Checks of stores: that they can be written, that conditions hold when writers race, and what the public log has there. */
import { randomBytes } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Storage } from '../../../config/object-storage.js';
import { hasErrno } from '../../core/files/errno.js';
import type { Pool } from '../../database/connect.js';
import { type OperatorStore, openOperatorStore } from '../../exports/destinations/operator-store.js';
import { raceWrites } from '../../exports/destinations/race.js';
import { findNewestPublishedBatch } from '../../log/store/batches.js';
import { type Log, listLogs } from '../../log/store/logs.js';
import { assertContinues, readStored } from '../../public/storage/store-log.js';
import { type Check, failed, ok, type Result, warning } from './finding.js';

const RACE_MS = 20_000;
const READ_MS = 10_000;
/** More than a full disk takes: an empty file has no blocks. */
const PROBE_BYTES = 64 * 1024;

/** The check of LOG_STORAGE: writes to it, and compares what it has with each log. */
export function storageCheck(pool: Pool, storage: Storage): Check {
  return {
    name: 'log storage',
    run: async () => {
      const opened = await openOperatorStore(storage);
      try {
        const written =
          'folder' in storage
            ? await tryFolder(storage.folder, 'a web server serves it')
            : await raceStorage(opened);
        const compared = (await listLogs(pool)).map((log) => compareStored(pool, opened, log));
        return [written, ...(await Promise.all(compared))];
      } finally {
        await opened.close();
      }
    },
  };
}

async function compareStored(pool: Pool, storage: OperatorStore, log: Log): Promise<Result> {
  const newest = await findNewestPublishedBatch(pool, log.id);
  try {
    const stored = await readStored({ storage, signal: AbortSignal.timeout(READ_MS) }, log);
    if (stored !== undefined) await assertContinues({ pool, storage }, log, stored, newest);
    const text = `${stored?.size ?? 0} of ${newest?.treeSize ?? 0} published leaves`;
    return stored?.size === (newest?.treeSize ?? 0)
      ? ok(text, log.origin)
      : warning(`${text}; a worker writes the rest within seconds, or logs why not`, log.origin);
  } catch (error) {
    return failed((error as Error).message, log.origin);
  }
}

/** Writes a file with content to a folder, and removes it. */
export async function tryFolder(folder: string, advice: string): Promise<Result> {
  const file = join(folder, `.doctor-${randomBytes(6).toString('hex')}`);
  try {
    await writeFile(file, Buffer.alloc(PROBE_BYTES), { flag: 'wx', mode: 0o600, flush: true });
    await rm(file);
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return warning(`${folder} is not there: it is made at the first start`);
    return failed(`${folder} cannot be written: ${(error as Error).message}`);
  }
  return ok(`${folder} can be written; ${advice}`);
}

/** Writers race for a probe below `doctor/`. Rejects with `DestinationError` if the store cannot be used. */
export async function raceStorage({ store, nameOf, location }: OperatorStore): Promise<Result> {
  const name = `doctor/${randomBytes(6).toString('hex')}`;
  const races = await raceWrites(store, nameOf(name), AbortSignal.timeout(RACE_MS));
  return ok(`${location(name)}: one writer won each of ${races} races`);
}
