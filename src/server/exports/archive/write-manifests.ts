/** What is signed of an archive: the manifest of a day, and the record of a log that has ended. */
import { equalBytes } from '../../../proof/bytes/primitives.js';
import { manifestStatement } from '../../../proof/export/manifest.js';
import type { ManifestFields } from '../../../proof/export/manifest-fields.js';
import { environmentName } from '../../../protocol/environment.js';
import type { Pool } from '../../database/connect.js';
import type { Log } from '../../log/store/logs.js';
import { bytesObject } from '../destinations/bytes-object.js';
import type { OperatorStore } from '../destinations/operator-store.js';
import { ArchiveError } from './archive-error.js';
import { dayManifestName, logRecordName } from './archive-names.js';
import type { ArchivableBatch } from './archived-rows.js';
import { type ArchivedDay, logRecordStatement, parseLogRecord, readLogRecord } from './log-record.js';
import { findManifest, putObject, readWhole, type StoredManifest } from './stored-objects.js';

/** `signStatement` makes the DSSE envelope of a statement with the key of the environment. */
export type SigningDeps = {
  storage: OperatorStore;
  signStatement: (environment: number, statement: Uint8Array) => Promise<Uint8Array>;
  signal: AbortSignal;
};

/** Writes the manifest of a day unless it is there with the same fields. */
export async function writeManifest(
  { storage, signStatement, signal }: SigningDeps,
  log: Log,
  { day, objects, isComplete }: Pick<ManifestFields, 'day' | 'objects' | 'isComplete'>,
): Promise<void> {
  const name = dayManifestName(log, day);
  const former = await findManifest(storage, name, log.origin, signal);
  const revision = former?.fields.revision ?? 0;
  const fields = manifestFields(log, { day, objects, isComplete });
  if (former !== undefined && isSame(former, { ...fields, revision })) return;
  const statement = manifestStatement({ ...fields, revision: revision + 1 });
  const content = await signStatement(log.environment, statement);
  const object = bytesObject({ name, content, contentType: 'application/json', revision: revision + 1 });
  await putObject(storage, object, former, signal);
}

function isSame({ statement }: StoredManifest, fields: ManifestFields): boolean {
  return equalBytes(statement, manifestStatement(fields));
}

function manifestFields(
  { origin, environment }: Log,
  { day, objects, isComplete }: Pick<ManifestFields, 'day' | 'objects' | 'isComplete'>,
): Omit<ManifestFields, 'revision'> {
  const range = { from: objects[0]?.firstIndex ?? 0, to: objects.at(-1)?.treeSize ?? 0 };
  return {
    exportId: origin,
    project: null,
    environment: environmentName(environment),
    day,
    filterSchema: null,
    isComplete,
    objects,
    logs: [{ origin, start: 0, ...range }],
  };
}

/** Writes the record of a log that has ended, unless it is there. */
export async function writeRecord(
  { pool, storage, signStatement, signal }: SigningDeps & { pool: Pool },
  log: Log,
  batches: readonly ArchivableBatch[],
  treeSize: number,
): Promise<void> {
  const days: ArchivedDay[] = [];
  for (const day of new Set(batches.map((batch) => batch.day))) {
    const manifest = await findManifest(storage, dayManifestName(log, day), log.origin, signal);
    if (manifest === undefined)
      throw new ArchiveError(`the archive lacks ${day}: archive from leaf 0 (--first)`);
    days.push({ name: `${day.replaceAll('-', '/')}/manifest.json`, sha256: manifest.sha256 });
  }
  const statement = logRecordStatement(await readLogRecord(pool, log, { treeSize, days }));
  const name = logRecordName(log);
  const former = await readWhole(storage, name, signal);
  if (former !== undefined && equalBytes(parseLogRecord(former.bytes).statement, statement)) return;
  const content = await signStatement(log.environment, statement);
  await putObject(
    storage,
    bytesObject({ name, content, contentType: 'application/json', revision: 1 }),
    former,
    signal,
  );
}
