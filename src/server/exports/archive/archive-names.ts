/** The names of an archive's objects, below the prefix of its store. */
import { MANIFEST_NAME } from '../../../proof/export/manifest.js';
import { environmentName } from '../../../protocol/environment.js';

/** The members of a log that names follow from; `environment` is a proto number. */
type NamedLog = { readonly origin: string; readonly environment: number };

const ORIGIN = /^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$/;

/** The folder of a log: `<origin>/<environment>`. Throws if the origin has characters that a folder has not. */
export function archiveFolder({ origin, environment }: NamedLog): string {
  if (!ORIGIN.test(origin)) throw new Error(`${origin} has characters that no folder of an archive can have`);
  return `${origin}/${environmentName(environment)}`;
}

/** The folder of a day, `yyyy-mm-dd`. */
export function dayFolder(log: NamedLog, day: string): string {
  return `${archiveFolder(log)}/${day.replaceAll('-', '/')}`;
}

/** The name of a batch's object in the folder of its day. */
export function archivedFileName(batchId: string): string {
  return `${batchId}.jsonl.gz`;
}

/** The name of a day's manifest. */
export function dayManifestName(log: NamedLog, day: string): string {
  return `${dayFolder(log, day)}/${MANIFEST_NAME}`;
}

/** The name of the record of a log that has ended, which is written last. */
export function logRecordName(log: NamedLog): string {
  return `${archiveFolder(log)}/log.json`;
}
