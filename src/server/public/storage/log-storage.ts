/** The public files in a store of the operator, from which anybody may read them while no API process runs. */
import type { LogSigner } from '../../../proof/log/log-signature.js';
import type { Logger } from '../../core/logger.js';
import type { Pool } from '../../database/connect.js';
import { bytesObject } from '../../exports/destinations/bytes-object.js';
import { revisionMetadata } from '../../exports/destinations/compare-and-swap.js';
import type { ExportObject, Stored } from '../../exports/destinations/object-store.js';
import type { OperatorStore } from '../../exports/destinations/operator-store.js';
import type { LogCache } from '../../log/log-cache.js';
import type { Log } from '../../log/store/logs.js';
import type { FileKind } from '../public-files.js';

/** Dependencies of what writes public files. `signal` ends a write in progress. */
export type StorageDeps = {
  pool: Pool;
  log: Logger;
  logCache: LogCache;
  storage: OperatorStore;
  /** Returns the signer of a log's checkpoints. Throws if this process does not hold the key. */
  signerOf: (log: Log) => LogSigner;
  signal: AbortSignal;
};

/** The storage has what contradicts the log: another service's files, or a database that lacks what was published. */
export class StorageConflict extends Error {
  override readonly name = 'StorageConflict';
}

/** Writes a file whose content never changes, unless it is there. Throws StorageConflict if it is there with other bytes. */
export async function addFile(
  { storage: { store, nameOf, location }, signal }: StorageDeps,
  name: string,
  kind: FileKind,
  content: Uint8Array | string,
): Promise<void> {
  const object = objectOf(nameOf(name), kind, content);
  if (await store.write(object, undefined, signal)) return;
  const found = await store.read(object.name, signal);
  if (found?.sha256 !== revisionMetadata(object).sha256)
    throw new StorageConflict(
      `${location(name)} has other bytes than the log: LOG_STORAGE is another service's`,
    );
}

/** Writes a file over the version that was read; false if another writer was faster. */
export function replaceFile(
  { storage: { store, nameOf }, signal }: StorageDeps,
  name: string,
  {
    kind,
    content,
    over,
  }: { kind: FileKind; content: Uint8Array | string; over: Pick<Stored, 'version'> | undefined },
): Promise<boolean> {
  return store.write(objectOf(nameOf(name), kind, content), over, signal);
}

/** Every object of the public log has revision 1: its name or its content says which one it is. */
function objectOf(name: string, kind: FileKind, content: Uint8Array | string): ExportObject {
  return bytesObject({ name, ...kind, content, revision: 1 });
}
